//! The readers of weights, on files of PyTorch's own and on broken ones.

use std::fs;
use std::io::Cursor;
use std::path::Path;

use hub::weights::{NumberType, Tensors, parse_index, safetensors, torch};
use proptest::prelude::*;

fn fixture(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)).unwrap()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()
}

#[test]
fn state_dicts_of_both_formats_are_read() {
    let expected = floats(&fixture("bin.f32"));
    for name in ["new.bin", "old.bin"] {
        let bytes = fixture(name);
        let tensors = torch::read(Cursor::new(&bytes)).unwrap();
        let found: Vec<f32> =
            tensors.values().flat_map(|found| floats(&bytes[found.bytes.clone()])).collect();
        assert_eq!(found, expected, "{name}");
        assert_eq!(tensors["bert.embeddings.token_type_embeddings.weight"].shape, [2, 8]);
    }
    let bytes = fixture("parameter.bin");
    let tensors = torch::read(Cursor::new(&bytes)).unwrap();
    assert_eq!(tensors["weight"].element, NumberType::Bf16);
    assert_eq!(tensors["weight"].shape, [2, 3]);
}

/// An old file whose fourth pickle, the state dict, is this.
fn old(pickle: &[u8]) -> Vec<u8> {
    let head: &[u8] = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}.";
    [head, pickle, b"\x80\x02]."].concat()
}

#[test]
fn nothing_but_tensors_is_taken_and_nothing_is_run() {
    let cases: [(&[u8], &str); 9] = [
        (b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00ls\x85R.", "asks for `os.system`"),
        (b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93.", "asks for `builtins.eval`"),
        (b"\x80\x02ctorch\nload\n.", "asks for `torch.load`"),
        (b"\x80\x02}X\x01\x00\x00\x00aK\x01s.", "has `a`, which is no tensor"),
        (b"\x80\x02K\x01.", "is not a dict of tensors"),
        (b"\x80\x02(i__main__\nX\n.", "instruction 0x69"),
        (b"\x80\x02ccollections\nOrderedDict\nK\x01\x85R.", "what it does not take"),
        (b"\x80\x02}0.", "instruction 0x30"),
        (
            b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\n\
              X\x01\0\0\0kX\x03\0\0\0cpuK\x01tQK\0(K\x01K\x01K\x01K\x01K\x01K\x01K\x01K\x01K\x01t)tR.",
            "a tensor of 9 dimensions",
        ),
    ];
    for (pickle, reason) in cases {
        let error = torch::read(Cursor::new(&old(pickle))).unwrap_err();
        assert!(error.contains(reason), "{error}");
    }
    assert_eq!(torch::read(Cursor::new(&old(b"\x80\x02}."))).unwrap(), Tensors::new());
    assert!(torch::read(Cursor::new(b"")).unwrap_err().contains("no file of PyTorch's"));
}

#[test]
fn a_tensor_larger_than_its_storage_is_refused() {
    let bytes = fixture("old.bin");
    let name = b"bert.embeddings.word_embeddings.weight";
    let at = bytes.windows(name.len()).position(|window| window == name).unwrap();
    let rows = bytes[at..].windows(3).position(|window| window == b"K\x8dK").unwrap();
    let mut larger = bytes.clone();
    larger[at + rows + 1] = 0xff;
    let error = torch::read(Cursor::new(&larger)).unwrap_err();
    assert!(error.contains("is larger than what the file has of it"), "{error}");
}

#[test]
fn hostile_safetensors_are_refused() {
    let file = |header: &str, numbers: usize| {
        let length = (header.len() as u64).to_le_bytes();
        [&length[..], header.as_bytes(), &vec![0; numbers]].concat()
    };
    let cases = [
        file(
            r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}"#,
            12,
        ),
        file(r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#, 4),
        file(r#"{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}}"#, 8),
        file(r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}}"#, 8),
        [&u64::MAX.to_le_bytes()[..], b"{}"].concat(),
        b"short".to_vec(),
    ];
    for (number, bytes) in cases.iter().enumerate() {
        let error = safetensors::read(Cursor::new(bytes)).unwrap_err();
        assert!(error.contains("is cut short or no safetensors file"), "{number}: {error}");
    }
}

/// A fixture with some bytes altered and perhaps its end cut off.
fn broken(name: &'static str) -> impl Strategy<Value = Vec<u8>> {
    let sound = fixture(name);
    let length = sound.len();
    let changes = prop::collection::vec((0..length, any::<u8>()), 0..6);
    (changes, prop_oneof![3 => Just(length), 1 => 0..length]).prop_map(move |(changes, cut)| {
        let mut bytes = sound.clone();
        changes.into_iter().for_each(|(at, byte)| bytes[at] = byte);
        bytes.truncate(cut);
        bytes
    })
}

/// Whatever was found lies within the file.
fn check(bytes: &[u8], tensors: Result<Tensors, String>) {
    for found in tensors.unwrap_or_default().values() {
        let numbers: usize = found.shape.iter().product();
        assert!(found.bytes.end <= bytes.len());
        assert!(numbers <= found.bytes.len() * 8);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn broken_files_are_read_or_refused(
        new in broken("new.bin"),
        old in broken("old.bin"),
        model in broken("bert/model.safetensors"),
    ) {
        check(&new, torch::read(Cursor::new(&new)));
        check(&old, torch::read(Cursor::new(&old)));
        check(&model, safetensors::read(Cursor::new(&model)));
    }

    /// Most of the pickle's instructions, in any order.
    #[test]
    fn any_pickle_is_run_or_refused(
        pickle in prop::collection::vec(prop_oneof![
            prop::sample::select(b"(NK\x88)]}t\x85\x86\x87aesuq\x94hQRb.".to_vec()),
            any::<u8>(),
        ], 0..60),
        names in prop::collection::vec(prop::sample::select(vec![
            "ccollections\nOrderedDict\n", "ctorch._utils\n_rebuild_tensor_v2\n",
            "ctorch\nFloatStorage\n", "X\x07\0\0\0storage", "X\x01\0\0\0k",
        ]), 0..4),
    ) {
        let all = [names.concat().as_bytes(), &pickle].concat();
        let bytes = old(&all);
        check(&bytes, torch::read(Cursor::new(&bytes)));
    }

    #[test]
    fn any_index_is_read_or_refused(text in "\\PC{0,60}|\\{\"weight_map\":\\{(\"[a-z./]{1,4}\":\"[a-z./]{0,5}\",?){0,3}\\}\\}") {
        for name in parse_index(&text).unwrap_or_default().into_values() {
            prop_assert!(!name.contains('/') && name != "..", "{name}");
        }
    }
}
