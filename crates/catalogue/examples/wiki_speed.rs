//! How fast a dump of Wikipedia becomes plain text, and what each step takes.
//!
//! `cargo run --release -p isogloss-catalogue --example wiki_speed -- TEXT [MEGABYTES]` dresses the
//! lines of a plain text up as articles with the markup that articles have, and packs them.

#![allow(missing_docs, reason = "an example")]

use std::error::Error;
use std::io::{Read, Write};
use std::path::Path;
use std::time::Instant;

use bzip2::read::MultiBzDecoder;
use catalogue::wiki::{Names, paragraphs, plain};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let text = std::fs::read_to_string(arguments.next().ok_or("name a text")?)?;
    let megabytes = arguments.next().map_or(Ok(50), |number| number.parse::<usize>())?;
    let articles = articles(&text, megabytes << 20);
    let dump = dump(&articles);
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
    encoder.write_all(dump.as_bytes())?;
    let packed = encoder.finish()?;
    println!(
        "{} articles, {:.1} MB of XML, {:.1} MB packed",
        articles.len(),
        mb(&dump),
        packed.len() as f64 / 1e6
    );

    let show = |name: &str, began: Instant| {
        println!("{name}: {:.1} MB/s of XML", mb(&dump) / began.elapsed().as_secs_f64());
    };
    let began = Instant::now();
    std::io::copy(&mut MultiBzDecoder::new(&packed[..]), &mut std::io::sink())?;
    show("bzip2 alone", began);
    let began = Instant::now();
    let names = Names::default();
    let shown: usize = articles.iter().map(|article| paragraphs(article, &names).len()).sum();
    show("markup alone, one thread", began);
    println!("{:.1} MB of text", shown as f64 / 1e6);
    let whole = |name, reader: &mut dyn Read| -> Result<(), Box<dyn Error>> {
        let (began, mut written) = (Instant::now(), 0);
        let mut write = |text: &[u8]| {
            written += text.len();
            Ok(())
        };
        plain(reader, Path::new("dump"), &mut write, &mut |_, _, _| {})?;
        show(name, began);
        assert_eq!(written, shown);
        Ok(())
    };
    whole("XML and markup, not packed", &mut dump.as_bytes())?;
    whole("all of it", &mut MultiBzDecoder::new(&packed[..]))
}

fn mb(text: &str) -> f64 {
    text.len() as f64 / 1e6
}

/// Ten lines an article, with what articles have around and in them.
fn articles(text: &str, bytes: usize) -> Vec<String> {
    let lines: Vec<&str> = text.lines().filter(|line| line.len() > 40).collect();
    let (mut articles, mut held) = (Vec::new(), 0);
    for (number, lines) in lines.chunks(10).cycle().enumerate() {
        let mut article = format!(
            "{{{{Infobox place\n| name = Place {number}\n| area = {{{{convert|{number}|km2}}}}\n| image = [[File:P.jpg]]\n\
             }}}}\n[[File:Map{number}.svg|thumb|upright=1.2|A map of [[Place {number}|the place]] in {{{{year}}}}]]\n"
        );
        for (row, line) in lines.iter().enumerate() {
            if row % 4 == 3 {
                article.push_str("\n== A heading ==\n* an item of a [[list]]\n* another\n\n");
            }
            for (place, word) in line.split(' ').enumerate() {
                match place % 23 {
                    4 => article.push_str(&format!("[[{word}]] ")),
                    11 => article.push_str(&format!("[[Page {place}|{word}]] ")),
                    17 => article.push_str(&format!("''{word}''<ref name=\"r{place}\">{{{{cite web|url=http://a.org/{place}|title=A title|date=2020}}}}</ref> ")),
                    _ => article.push_str(&format!("{word} ")),
                }
            }
            article.push_str("\n\n");
        }
        article.push_str("{| class=\"wikitable\"\n! a !! b\n|-\n| 1 || 2\n|}\n{{Reflist}}\n[[Category:Places]]\n");
        held += article.len();
        articles.push(article);
        if held >= bytes {
            break;
        }
    }
    articles
}

fn dump(articles: &[String]) -> String {
    let mut dump = String::from("<mediawiki>\n");
    for (number, article) in articles.iter().enumerate() {
        let text = article
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;")
            .replace('"', "&quot;");
        dump.push_str(&format!(
            "<page><title>Place {number}</title><ns>0</ns><id>{number}</id><revision><model>wikitext</model>\
             <text xml:space=\"preserve\">{text}</text></revision></page>\n"
        ));
    }
    dump + "</mediawiki>\n"
}
