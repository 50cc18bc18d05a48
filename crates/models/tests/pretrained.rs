//! Checkpoints from elsewhere, opened as models.

use std::path::Path;

use models::PretrainedModel;
use tensor::Device;

#[test]
fn a_pair_is_two_segments_and_a_sentence_is_one() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hub/tests/fixtures/bert");
    let model = PretrainedModel::open(&folder, &Device::cpu(1).unwrap()).unwrap();
    let (start, end) = model.vocabulary.bos_eos();
    let pair = [start, 7, 8, end, 9, 10, end];
    let batch = model.batch(0, [&pair[..], &[start, 7, end]]);
    let segments = batch.segments.expect("BERT has segments");
    assert_eq!(segments[..], [0, 0, 0, 0, 1, 1, 1, 0, 0, 0]);
    assert!(model.has_mlm_head);
}
