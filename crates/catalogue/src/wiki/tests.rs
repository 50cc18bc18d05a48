//! Kinds of markup as they stand in real articles, written by hand; then anything at all.

use std::io::Write;
use std::time::Instant;

use proptest::prelude::*;

use super::*;

fn clean(text: &str) -> String {
    let mut names = Names::default();
    names.hide("Fichier");
    names.hide("Catégorie");
    paragraphs(text, &names)
}

#[track_caller]
fn becomes(text: &str, expected: &str) {
    assert_eq!(clean(text).trim_end_matches('\n'), expected);
}

#[test]
fn templates_go_however_deep() {
    becomes(
        "{{Infobox ville\n| nom = Paris\n| pop = {{nb|2 {{small|M}}}}\n}}\n'''Paris''' est.",
        "Paris est.",
    );
    becomes("A {{a|{{b|{{{c|d}}}}}|e}} B", "A B");
    becomes("x{{{1|}}}y", "xy");
    becomes("A {{quote|}} B{{sfn|X|\n|}}.", "A B.");
    becomes("born {{circa|1900}}, died", "born, died");
}

#[test]
fn tables_go_with_what_is_in_them() {
    let table = "Before.\n{| class=\"wikitable\"\n! a !! b\n|-\n| {{x}} || [[y|z]]\n|}\nAfter.";
    becomes(table, "Before.\nAfter.");
    becomes("{|\n|\n{|\n| inner\n|}\n| outer\n|}\nAfter.", "After.");
    becomes(":{| \n| indented\n|}\nAfter.", "After.");
    becomes("{{box|\n{|\n| a\n|}}}\nAfter.", "After.");
    becomes("<table><tr><td>cell</td></tr></table>After.", "After.");
    // Left open, its lines go one by one.
    becomes("{| class=x\n| a\n! b\n|-\nAfter.", "After.");
}

#[test]
fn references_and_comments_go() {
    becomes(
        "One<ref>Smith {{p|5}}</ref> two<ref name=\"a\" /> three<ref name=b>x</ref>.",
        "One two three.",
    );
    becomes("A<!-- hidden [[link]] \n more --> B", "A B");
    becomes("A<REF>x</REF> B<references/>", "A B");
    becomes("E = <math>\\frac{{a}}{b}</math> ok", "E = ok");
    becomes("code <syntaxhighlight lang=\"c\">a {{ b</syntaxhighlight> end", "code end");
    becomes("<gallery>\nFile:A.jpg|caption\n</gallery>\nText.", "Text.");
    // Left open: the tag goes and the text stays; a comment hides the rest.
    becomes("One<ref>two three.", "Onetwo three.");
    becomes("One</ref> two.", "One two.");
    becomes("One <!-- two", "One");
}

#[test]
fn links_show_their_text() {
    becomes("The [[cat]] and [[Canis lupus|the '''dog''']]s.", "The cat and the dogs.");
    becomes("[[Fichier:A.jpg|thumb|A [[cat]] on [[mat|a mat]]]]The cat.", "The cat.");
    becomes("[[File:A.ogg|left]] [[Image: b.png ]]x", "x");
    becomes(
        "[[Category:Cats|*]][[Catégorie:Chats]]\n[[de:Katze]]\n[[zh-min-nan:Niau]]\nText.",
        "Text.",
    );
    becomes("See [[:Category:Cats]] and [[:fr:Chat|Chat]].", "See Category:Cats and Chat.");
    becomes("[[Star Trek: Voyager]] and [[wikt:cat|cat]]", "Star Trek: Voyager and cat");
    becomes(
        "At [http://a.org the [[site]]], [https://b.org] and [[c|[//d e]]].",
        "At the site, and e.",
    );
    becomes("See http://a.org/b and [not a link].", "See http://a.org/b and [not a link].");
    becomes("Open [[link goes\n\nOn it goes.]] x", "Open link goes\nOn it goes. x");
    becomes("[[a|]] [[|b]]", "a b");
}

#[test]
fn only_running_text_stays() {
    let text = "== Heading ==\n* item\n# one\n: indented\n; term\n----\n__NOTOC__\nText ''in'' lines.\n=== More===";
    becomes(text, "Text in lines.");
    becomes("__БЕЗ_ОГЛАВЛЕНИЯ__ a", "__БЕЗ_ОГЛАВЛЕНИЯ__ a");
    becomes("l'''homme''' d''''avant'''' '''''x'''''", "lhomme d'avant' x");
    becomes("a<br/>b <small>c</small> <span style=\"x>y\">d", "a b c y\">d");
    becomes("1 < 2 and a <b", "1 < 2 and a <b");
    becomes("123 {{x}} – 45", "");
}

#[test]
fn what_is_left_behind_is_tidied() {
    becomes("Paris ({{IPA|x}}) est. Lyon ({{a}}, ; né ) ici ( ).", "Paris est. Lyon (né ) ici.");
    becomes("北京（{{拼音}}）是", "北京是");
    becomes("a &amp; b&nbsp;&ndash; c &#65;&#x42; &unknown; &", "a & b – c AB &unknown; &");
    becomes("&lt;ref&gt;x&lt;/ref&gt;", "<ref>x</ref>");
    becomes("<nowiki>[[not]] '''a''' {{link}}</nowiki> b", "[[not]] '''a''' {{link}} b");
    becomes("tabs\tand   spaces \u{200e}here\u{ad}", "tabs and spaces here");
    becomes("-{zh-hans:计算机; zh-hant:電腦}-和-{A}- x-{H|zh-cn:甲;zh-tw:乙}-y", "计算机和A xy");
    becomes("stray }} and {{ braces ]] here", "stray and braces here");
}

fn page(namespace: &str, extra: &str, text: &str) -> String {
    format!(
        "<page><title>T</title><ns>{namespace}</ns><id>1</id>{extra}<revision><id>2</id>\
         <model>wikitext</model><text bytes=\"1\" xml:space=\"preserve\">{text}</text></revision></page>"
    )
}

fn dump(pages: &[String]) -> String {
    let names = "<siteinfo><namespaces><namespace key=\"6\" case=\"x\">Datei</namespace>\
                 <namespace key=\"0\" /></namespaces></siteinfo>";
    format!("<mediawiki>{names}{}</mediawiki>", pages.concat())
}

fn extracted(bytes: &[u8]) -> Result<(String, ExtractionCounts)> {
    let (path, mut written) = (Path::new("d.xml.bz2"), Vec::new());
    let done = extract(&mut &bytes[..], path, Path::new("o"), &mut written, &mut |_, _, _| {})?;
    Ok((String::from_utf8(zstd::decode_all(&written[..]).unwrap()).unwrap(), done))
}

fn bzip2(text: &str) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_dump_becomes_paragraphs() {
    let pages = [
        page(
            "0",
            "",
            "[[Datei:x.png|mini]]&lt;!-- c --&gt;'''Eins''' &amp;amp; zwei.\n\nDrei&lt;ref>r&lt;/ref>.",
        ),
        page("1", "", "talk"),
        page("0", "<redirect title=\"X\" />", "#REDIRECT [[X]]"),
        page("0", "", "Vier."),
        "<page><title>S</title><ns>0</ns><revision><text /></revision></page>".into(),
    ];
    let dump = dump(&pages);
    let (text, done) = extracted(dump.as_bytes()).unwrap();
    assert_eq!(text, "Eins & zwei.\nDrei.\nVier.\n");
    assert_eq!((done.paragraphs, done.articles, done.left_out), (3, 3, 2));
    assert_eq!(done.xml, dump.len() as u64);
    // Compressed, and in two streams one after the other, as the servers' files are.
    let (one, two) = dump.split_at(dump.len() / 2);
    assert_eq!(extracted(&[bzip2(one), bzip2(two)].concat()).unwrap().0, text);
    assert_eq!(extracted(&bzip2(&dump)).unwrap().1, done);
}

#[test]
fn a_dump_that_lies_is_refused() {
    let dump = dump(&[page("0", "", &"Words and words. ".repeat(2000))]);
    let compressed = bzip2(&dump);
    let says = |bytes: &[u8], reason: &str| {
        let error = extracted(bytes).unwrap_err().to_string();
        assert!(error.contains("d.xml.bz2") && error.contains(reason), "{error}");
    };
    says(&compressed[..compressed.len() / 2], "is cut short");
    says(&dump.as_bytes()[..dump.len() / 2], "is cut short");
    says(b"", "holds no article");
    says(b"<mediawiki></mediawiki>", "holds no article");
    says(b"plain text", "holds no article");
    says(b"<page><ns>0</ns><text>a</b></page>", "is cut short or no dump");
}

/// Pieces of markup in any order, closed or not.
fn pieces() -> impl Strategy<Value = String> {
    let pieces = [
        "{{",
        "}}",
        "{|",
        "|}",
        "[[",
        "]]",
        "[http://a",
        "]",
        "<ref>",
        "</ref>",
        "<ref",
        "/>",
        "<!--",
        "-->",
        "<nowiki>",
        "</nowiki>",
        "'''",
        "''",
        "'",
        "|",
        "=",
        "\n",
        "\n\n",
        "*",
        "&amp;",
        "&",
        ";",
        "-{",
        "}-",
        "__",
        "File:",
        ":",
        "(",
        ")",
        "é",
        "字",
        " ",
        "word",
        "<br>",
        "<",
        ">",
        "{",
        "}",
        "!",
    ];
    prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..60).prop_map(|all| all.concat())
}

proptest! {
    #[test]
    fn nothing_panics_and_nothing_grows(text in prop_oneof![pieces(), any::<String>()]) {
        let cleaned = clean(&text);
        // An entity may be longer as a character than as a name, never by more than this.
        prop_assert!(cleaned.len() <= 2 * text.len() + 1);
        for line in cleaned.lines() {
            prop_assert!(!line.trim().is_empty() && line.trim() == line);
        }
    }
}

/// Time grows with the text and not with its square, whatever is left open.
#[test]
fn time_is_linear() {
    let tricks = [
        "{{",
        "[[",
        "[[a|",
        "<ref>",
        "<ref",
        "<!--",
        "<",
        "{|\n",
        "|}",
        "(",
        "&",
        "-{",
        "__",
        "'",
        "[http://a ",
        "]]",
        "}}",
        "<nowiki>",
        "{{a}}",
        "</",
        "<br",
        "{",
        ":::{|",
    ];
    for trick in tricks {
        let text = trick.repeat(2_000_000 / trick.len());
        let began = Instant::now();
        clean(&text);
        let seconds = began.elapsed().as_secs_f64();
        // A fraction of a second where time grows with the text, and hours where with its square.
        assert!(seconds < 60.0, "2 MB of `{trick}` took {seconds:.1} s");
    }
}
