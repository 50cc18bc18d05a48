//! Every format there and back, and every way in which a file can lie.

use proptest::prelude::*;

use super::*;

const ALL: [(VectorFormat, &str); 4] = [
    (VectorFormat::Text, "a.vec"),
    (VectorFormat::Binary, "a.bin"),
    (VectorFormat::Glove, "a.glove"),
    (VectorFormat::Npy, "a.npy"),
];

fn table(words: &[&str], dim: usize, values: Vec<f32>) -> WordVectors {
    WordVectors::new(words.iter().map(|&word| word.to_owned()).collect(), dim, values).unwrap()
}

fn read_bytes(bytes: &[u8], format: Option<VectorFormat>) -> Result<WordVectors> {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("v.txt");
    std::fs::write(&path, bytes).unwrap();
    read(&path, ReadOptions { format, limit: None })
}

/// That a file is refused, and the message without the folder's name.
fn refused(bytes: &[u8], format: Option<VectorFormat>) -> String {
    let message = read_bytes(bytes, format).unwrap_err().to_string();
    message.split_once("v.txt").expect("names the file").1.to_owned()
}

#[test]
fn every_format_comes_back_to_the_bit() {
    let place = tempfile::tempdir().unwrap();
    let values = vec![0.1, -2.5e-20, 1.0, 3.0e7, f32::MIN_POSITIVE, -0.0];
    let vectors = table(&["the", "für", "日本"], 2, values);
    for (format, name) in ALL {
        let path = place.path().join(name);
        assert_eq!(VectorFormat::for_name(&path), format);
        write(&path, &vectors, None).unwrap();
        assert_eq!(read(&path, ReadOptions::default()).unwrap(), vectors, "{name}");
        let two = read(&path, ReadOptions { format: Some(format), limit: Some(2) }).unwrap();
        assert_eq!(two, table(&["the", "für"], 2, vectors.values()[..4].to_vec()), "{name}");
    }
}

#[test]
fn what_others_write_is_read() {
    // fastText ends lines with a space, Word2Vec's text too; some files have tabs and CR.
    let two = table(&["</s>", "a"], 2, vec![0.5, -1.0, 2.0, 3e-5]);
    for text in ["2 2\n</s> 0.5 -1 \na 2 3e-05 \n", "2 2\r\n</s>\t0.5 -1\r\na 2.0\t3e-5"] {
        assert_eq!(read_bytes(text.as_bytes(), None).unwrap(), two);
        let glove = text.split_once('\n').unwrap().1;
        assert_eq!(read_bytes(glove.as_bytes(), None).unwrap(), two);
    }
    // Word2Vec's binary has a line break after each row, gensim's has none.
    for end in ["\n", ""] {
        let mut bytes = b"2 2\n".to_vec();
        for (word, row) in [("</s> ", [0.5f32, -1.0]), ("a ", [2.0, 3e-5])] {
            bytes.extend(word.bytes());
            bytes.extend(row.iter().flat_map(|value| value.to_le_bytes()));
            bytes.extend(end.bytes());
        }
        assert_eq!(read_bytes(&bytes, None).unwrap(), two);
    }
}

#[test]
fn compressed_files_marks_and_blank_ends_are_read() {
    let two = table(&["a", "b"], 2, vec![0.5, -1.0, 2.0, 3.0]);
    let place = tempfile::tempdir().unwrap();
    let compressed = |bytes: &[u8]| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut gzip, bytes).unwrap();
        [("gz", gzip.finish().unwrap()), ("zst", zstd::encode_all(bytes, 1).unwrap())]
    };
    for (_, name) in ALL {
        let plain = place.path().join(name);
        write(&plain, &two, None).unwrap();
        for (end, bytes) in compressed(&std::fs::read(&plain).unwrap()) {
            let path = place.path().join(format!("{name}.{end}"));
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(read(&path, ReadOptions::default()).unwrap(), two, "{name}.{end}");
            std::fs::write(&path, &bytes[..bytes.len() - 9]).unwrap();
            assert!(read(&path, ReadOptions::default()).is_err(), "{name}.{end} is cut short");
        }
    }
    for text in ["\u{feff}2 2\na 0.5 -1\nb 2 3\n\n \n\r\n", "\u{feff}a 0.5 -1\nb 2 3\n\n"] {
        assert_eq!(read_bytes(text.as_bytes(), None).unwrap(), two);
    }
}

#[test]
fn a_file_that_lies_is_refused_with_its_line() {
    let text = |text: &str| refused(text.as_bytes(), None);
    assert_eq!(text(""), ": is empty; give a file that holds vectors");
    assert!(text("3 2\na 1 2\nb 1 2\n").starts_with(": the header promises 3 vectors, and 2 are"));
    assert!(text("1 2\na 1 2\nb 1 2\n").starts_with(":3: the header promises 1 vectors"));
    assert!(text("2 3\na 1 2\nb 1 2\n").starts_with(":2: `a` has 2 values, not 3"));
    assert!(text("2 2\na 1 2\nb 1 nan\n").starts_with(":3: `b` has NaN in column 2"));
    assert!(text("2 2\na 1 2\nb 1 1e99\n").starts_with(":3: `b` has inf"));
    assert!(text("2 2\na 1 2\na 1 2\n").starts_with(":3: `a` is there already, as number 1"));
    assert!(text("2 2\na 1 x\nb 1 2\n").starts_with(":2: column 3 is `x`, which is not a number"));
    assert!(text("a 1 2\nb 1\n").starts_with(":2: `b` has 1 values, not 2"));
    assert!(text("a\nb\n").starts_with(":1: a word without values"));
    assert!(text("0 5\n").starts_with(":1: the header promises 0 vectors"));
    assert!(text("2 2\n").starts_with(": the header promises 2 vectors, and 0"));
    assert!(text("\n\n").starts_with(":1: a word without values"));
    assert!(text("2 2\na 1 2\n\n").starts_with(": the header promises 2 vectors, and 1 are"));
    assert!(
        text("2 2\na 1 2\n\n\nb 1 2\n").starts_with(":3: is blank, and vectors go on at line 5")
    );
    // Text with a fault is text, wherever the fault is, and no binary file.
    let commas = "3 3\nthe 0,1 0,2 0,3\nof 1 2 3\ncat 1 2 2\ndog 1 0 0\n";
    assert!(text(commas).starts_with(":2: column 2 is `0,1`, which is not a number"));
    let latin = [commas.as_bytes(), b"caf\xe9 1 2 3\n"].concat();
    assert!(refused(&latin, None).starts_with(":2: column 2 is `0,1`"));
    assert!(text("1 3\nthe <br> & co.\n").starts_with(":2: column 2 is `<br>`"));
    assert!(refused(b"2 1\na 1\n\xff\xfe 2\n", None).starts_with(":3: is not UTF-8"));
    let headless = refused(b"a 1 2\n", Some(VectorFormat::Text));
    assert!(headless.starts_with(":1: no header of two numbers"), "{headless}");
    assert!(headless.contains("read it as GloVe's format"));
    assert!(refused(&FASTTEXT_MODEL.repeat(9), None).contains("is a model of fastText"));
}

#[test]
fn a_binary_that_lies_is_refused_with_its_row() {
    let binary = |count: usize, rows: &[(&[u8], f32)]| {
        let mut bytes = format!("{count} 1\n").into_bytes();
        for (word, value) in rows {
            bytes.extend_from_slice(word);
            bytes.push(b' ');
            bytes.extend(value.to_le_bytes());
        }
        refused(&bytes, Some(VectorFormat::Binary))
    };
    let two: [(&[u8], f32); 2] = [(b"a", 1.0), (b"b", 2.0)];
    assert!(binary(3, &two).starts_with(": the header promises 3 vectors, and 2 are there"));
    assert!(binary(1, &two).starts_with(": goes on after the 1 vectors"));
    assert!(binary(2, &[two[0], two[0]]).starts_with(":2: `a` is there already"));
    assert!(binary(2, &[two[0], (b"c", f32::INFINITY)]).starts_with(":2: `c` has inf"));
    assert!(binary(2, &[two[0], (b"\xff", 1.0)]).starts_with(":2: the word is not UTF-8"));
    assert!(
        refused(b"2 1\na \0\0", Some(VectorFormat::Binary))
            .contains("ends within the vector of `a`")
    );
    for header in ["99999999999999 99999999", "1 9999999999999999999", "1 99999999999999"] {
        let said = refused(format!("{header}\na ").as_bytes(), Some(VectorFormat::Binary));
        assert!(said.contains("more than the file can hold"), "{said}");
        let said = refused(format!("{header}\na 1\n").as_bytes(), Some(VectorFormat::Text));
        assert!(said.contains("more than the file can hold"), "{said}");
    }
    assert!(refused(b"a b c", Some(VectorFormat::Binary)).contains("no header"));
}

#[test]
fn words_and_array_must_fit() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("a.npy");
    write(&path, &table(&["a", "b"], 1, vec![1.0, 2.0]), None).unwrap();
    std::fs::write(path.with_extension("vocab"), "a\n").unwrap();
    let message = read(&path, ReadOptions::default()).unwrap_err().to_string();
    assert!(message.contains("a.vocab: has 1 words for the 2 rows"), "{message}");
    std::fs::remove_file(path.with_extension("vocab")).unwrap();
    let message = read(&path, ReadOptions::default()).unwrap_err().to_string();
    assert!(message.contains("cannot read the words"), "{message}");
}

#[test]
fn a_word_with_a_space_is_not_written() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("a.vec");
    let message = write(&path, &table(&["new york"], 1, vec![1.0]), None).unwrap_err().to_string();
    assert!(message.contains("\"new york\" has white space"), "{message}");
    assert!(!path.exists());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_bytes_make_the_readers_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        start in prop_oneof![Just(""), Just("2 2\n"), Just("2 2\na "), Just("1 9999999\nb ")],
        format in prop_oneof![
            Just(None), Just(Some(VectorFormat::Text)), Just(Some(VectorFormat::Binary)), Just(Some(VectorFormat::Npy))
        ],
    ) {
        let _ = read_bytes(&[start.as_bytes(), &bytes].concat(), format);
    }

    #[test]
    fn any_finite_table_comes_back(
        words in prop::collection::hash_set("[^\\s]{1,8}", 1..6),
        seed in prop::collection::vec(-1e30f32..1e30, 3),
        which in 0usize..4,
    ) {
        let words: Vec<String> = words.into_iter().collect();
        let values = words.iter().flat_map(|_| seed.clone()).collect();
        let vectors = WordVectors::new(words, 3, values).unwrap();
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join(ALL[which].1);
        write(&path, &vectors, None).unwrap();
        prop_assert_eq!(read(&path, ReadOptions { format: Some(ALL[which].0), limit: None }).unwrap(), vectors);
    }
}
