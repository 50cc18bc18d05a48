//! What the cases start from: the smallest world, run, vocabulary and so on, made by the binary under test, and files
//! of others' formats from the tests' fixtures.

use std::fs;
use std::io::{Cursor, Write};
use std::path::Path;

use safetensors::tensor::{Dtype, TensorView};
use torment::mutation::{Packing, packed};
use torment::readers::{copy, mining_search};
use zip::write::SimpleFileOptions;

use crate::process::Binary;
use crate::recipes::{Place, STEP};

/// A study of one run and one evaluation.
const STUDY: &str = include_str!("study.toml");

/// Commands in the folder of materials.
const COMMANDS: [&str; 16] = [
    "world generate --out world --sentences 200 {sizes}",
    "pretrain --world {base}/world --steps 8 --checkpoint-every 4 --evaluate-every 4 --set stages=[] --vocabulary.merges 60 \
     --batch.sequences 4 --text.dev 40 --encoder.layers 2 --encoder.dim 16 --encoder.heads 2 --encoder.hidden 32 \
     --out run --device cpu",
    "pretrain --world {base}/world --steps 4 --checkpoint-every 4 --set stages=[] --vocabulary.merges 60 \
     --batch.sequences 4 --text.dev 40 --encoder.layers 1 --encoder.dim 16 --encoder.heads 2 --encoder.hidden 32 \
     --seed 2 --out run2 --device cpu",
    "transfer --task ner --model {base}/run --world {base}/world --quick --epochs 1 --limit 12 --lr 1e-3,2e-3 \
     --out transfer --device cpu",
    "vectors word2vec --text qaa=world/text/qaa.base.txt --lines --dim 8 --epochs 2 --out a.vec",
    "vectors word2vec --text qab=world/text/qab.base.txt --lines --dim 8 --epochs 2 --out b.vec",
    "vectors convert a.vec --out a.bin",
    "vectors convert a.vec --out vectors/a.npy",
    "align words --source a.vec --target b.vec --dictionary world/muse/qaa-qab.txt --save-map map.npy --out mapped.vec",
    "word-align -p qaa-qab=world/bitext/bitext.qaa-qab.tsv --save align.model --out links.txt",
    "hub export --model run --out hf --device cpu",
    "encode --model run --text qaa=world/text/qaa.base.txt --out states.npy --device cpu",
    "encode --model run --text qaa=world/text/qaa.base.txt --pool none --out saved --device cpu",
    "shift means --model run --text qaa=world/text/qaa.base.txt --text qab=world/text/qab.base.txt \
     --out means.safetensors --device cpu",
    "mine --model {base}/run --text qaa=world/text/qaa.base.txt --text qab=world/text/qab.base.txt --work mining \
     --out mined.tsv --device cpu",
    "data get tatoeba --lang fr --mirror {server} --out data",
];

/// Copies within the folder, under the names that recipes and readers use.
const COPIES: [(&str, &str); 11] = [
    ("world/text/qaa.base.txt", "text.txt"),
    ("world/text/qab.base.txt", "text.qab.txt"),
    ("world/bitext/bitext.qaa-qab.tsv", "bitext.tsv"),
    ("world/muse/qaa-qab.txt", "dictionary.txt"),
    ("world/xnli/test-qaa.tsv", "nli.tsv"),
    ("world/ner/panx-train-qaa.tsv", "ner.tsv"),
    ("world/ud/qaa_world-ud-train.conllu", "treebank.conllu"),
    ("world/classify/test-qaa.tsv", "classify.tsv"),
    ("treebank.conllu", "scored/gold.conllu"),
    ("treebank.conllu", "scored/predicted.conllu"),
    ("run", "run1"),
];

macro_rules! fixture {
    ($name:literal) => {
        include_bytes!(concat!("../../hub/tests/fixtures/", $name))
    };
}

macro_rules! sentences {
    ($name:literal) => {
        include_bytes!(concat!("../../models/tests/fixtures/sentences/several/", $name))
    };
}

/// Models as others write them.
const FIXTURES: [(&str, &[u8]); 27] = [
    ("twice.tsv", b"eins\tone\nein\tone\n"),
    ("new.bin", fixture!("new.bin")),
    ("old.bin", fixture!("old.bin")),
    ("bert/config.json", fixture!("bert/config.json")),
    ("bert/vocab.txt", fixture!("bert/vocab.txt")),
    ("bert/tokenizer_config.json", fixture!("bert/tokenizer_config.json")),
    ("bert/model.safetensors", fixture!("bert/model.safetensors")),
    ("roberta/config.json", fixture!("roberta/config.json")),
    ("roberta/vocab.json", fixture!("roberta/vocab.json")),
    ("roberta/merges.txt", fixture!("roberta/merges.txt")),
    ("roberta/model.safetensors", fixture!("roberta/model.safetensors")),
    ("roberta-tokenizer/config.json", fixture!("roberta/config.json")),
    ("roberta-tokenizer/tokenizer.json", fixture!("roberta/tokenizer.json")),
    ("roberta-tokenizer/model.safetensors", fixture!("roberta/model.safetensors")),
    ("xlm-roberta/config.json", fixture!("xlm-roberta/config.json")),
    ("xlm-roberta/tokenizer.json", fixture!("xlm-roberta/tokenizer.json")),
    ("xlm-roberta/model.safetensors", fixture!("xlm-roberta/model.safetensors")),
    ("llama.gguf", fixture!("gguf/llama.gguf")),
    ("sentences/config.json", fixture!("bert/config.json")),
    ("sentences/vocab.txt", fixture!("bert/vocab.txt")),
    ("sentences/model.safetensors", fixture!("bert/model.safetensors")),
    ("sentences/modules.json", sentences!("modules.json")),
    ("sentences/1_Pooling/config.json", sentences!("1_Pooling/config.json")),
    ("sentences/2_Dense/config.json", sentences!("2_Dense/config.json")),
    ("sentences/2_Dense/model.safetensors", sentences!("2_Dense/model.safetensors")),
    ("sentences/3_Dense/config.json", sentences!("3_Dense/config.json")),
    ("sentences/3_Dense/model.safetensors", sentences!("3_Dense/model.safetensors")),
];

/// Makes everything in the folder `place.base`.
pub(crate) fn make(binary: &Binary, place: &Place) -> Result<(), String> {
    let base = place.base;
    fs::create_dir_all(base.join("vectors")).map_err(|error| error.to_string())?;
    for line in COMMANDS {
        let ended = binary.run(base, &place.line(line, 1))?;
        if !ended.success() {
            return Err(format!("the materials cannot be made: {line}\n{}", ended.stderr));
        }
    }
    fill(base).map_err(|error| format!("the materials cannot be made: {error}"))?;
    for line in [
        "study run study.toml --lab lab --device cpu",
        "study pack lab --out pack.tar.zst",
        "study submit study.toml --lab submitted --device cpu --slurm --dry-run",
    ] {
        let ended = binary.run(base, &place.line(line, 1))?;
        if !ended.success() {
            return Err(format!("the study cannot be run or packed: {}", ended.stderr));
        }
    }
    step(binary, place)
}

/// The words by which `study step` runs the first step of the study.
fn step(binary: &Binary, place: &Place) -> Result<(), String> {
    let line = "study plan study.toml --format snakemake --lab {base}/graph --device cpu --json";
    let ended = binary.run(place.base, &place.line(line, 1))?;
    let planned: serde_json::Value =
        serde_json::from_str(&ended.stdout).map_err(|error| error.to_string())?;
    let rule = planned["snakefile"].as_str().and_then(|text| text.split_once("rule step_"));
    let key = rule.and_then(|(_, rest)| rest.split_once(':'));
    let (Some((key, _)), Some(graph)) = (key, planned["graph"].as_str()) else {
        return Err(format!("the study cannot be planned: {}", ended.stderr));
    };
    fs::write(place.base.join(STEP), format!("{key} --graph {graph}")).map_err(|e| e.to_string())
}

fn fill(base: &Path) -> std::io::Result<()> {
    for (name, bytes) in FIXTURES {
        let path = base.join(name);
        fs::create_dir_all(path.parent().expect("in the folder"))?;
        fs::write(path, bytes)?;
    }
    fs::create_dir_all(base.join("scored"))?;
    for (from, to) in COPIES {
        copy(&base.join(from), &base.join(to))?;
    }
    fs::write(base.join("study.toml"), STUDY)?;
    fs::create_dir_all(base.join("leased/steps/step"))?;
    let lease = r#"{"host":"node7","pid":7,"job":"3_1","nonce":"x"}"#;
    fs::write(base.join("leased/steps/step/lease"), lease)?;
    mining_search().save(&base.join("mining.state")).map_err(std::io::Error::other)?;
    // Long enough that it is read in many parts.
    fs::write(base.join("long.txt"), fs::read(base.join("text.txt"))?.repeat(40))?;
    for (name, packing) in [
        ("long.txt", Packing::Gzip),
        ("text.txt", Packing::Gzip),
        ("text.txt", Packing::Zstd),
        ("a.vec", Packing::Gzip),
        ("nli.tsv", Packing::Gzip),
    ] {
        let ending = if packing == Packing::Gzip { "gz" } else { "zst" };
        let bytes = packed(&fs::read(base.join(name))?, packing);
        fs::write(base.join(format!("{name}.{ending}")), bytes)?;
    }
    let map = fs::read(base.join("map.npy"))?;
    fs::write(base.join("states.npz"), zipped(&[("0.npy", &map), ("1.npy", &map)])?)?;
    let view = || TensorView::new(Dtype::F32, vec![4, 3], &[0x3f; 48]);
    let views =
        [("0", view()), ("1", view())].map(|(name, view)| (name, view.expect("twelve numbers")));
    fs::write(
        base.join("states.safetensors"),
        safetensors::serialize(views, None).expect("sound"),
    )?;
    let pair = |label: &str| {
        format!(
            "{{\"language\":\"fr\",\"gold_label\":\"{label}\",\"sentence1\":\"Un chat.\",\"sentence2\":\"Il dort.\"}}\n"
        )
    };
    let pairs = [pair("neutral"), pair("entailment"), pair("contradiction")].concat();
    let members: [(&str, &[u8]); 2] = [
        ("XNLI-1.0/xnli.dev.jsonl", pairs.as_bytes()),
        ("XNLI-1.0/xnli.test.jsonl", pairs.as_bytes()),
    ];
    fs::write(base.join("xnli.zip"), zipped(&members)?)?;
    fs::write(base.join("panlex.zip"), zipped(&PANLEX)?)?;
    fs::write(base.join("qaa.tar.gz"), tar_gz()?)?;
    fs::write(base.join("wiki.xml"), WIKI)?;
    fs::write(base.join("wiki.xml.bz2"), packed(WIKI.as_bytes(), Packing::Bzip2))
}

const PANLEX: [(&str, &[u8]); 5] = [
    ("p/langvar.csv", b"id,lang_code,var_code,name_expr\n1,eng,0,9\n2,fra,0,9\n"),
    (
        "p/expr.csv",
        b"id,langvar,txt,txt_degr\n10,1,cat,cat\n11,1,\"ice, \"\"dry\"\"\",ice\n20,2,chat,chat\n",
    ),
    ("p/source.csv", b"id,reg_date,label,quality\n5,2010,a,7\n6,2010,b,2\n"),
    ("p/meaning.csv", b"id,source\n100,5\n101,6\n"),
    ("p/denotation.csv", b"id,meaning,expr\n1,100,10\n2,100,20\n3,101,11\n4,101,20\n"),
];

const WIKI: &str = "<mediawiki xml:lang=\"sw\"><siteinfo><namespaces><namespace key=\"6\">Picha</namespace></namespaces></siteinfo>\
<page><title>Paka</title><ns>0</ns><revision><model>wikitext</model><text xml:space=\"preserve\">'''Paka''' ni [[mnyama]] \
{{Infobox|jina=Paka|{{ndani}}}} &lt;ref name=\"a\"&gt;x&lt;/ref&gt;.\n\n== Habari ==\n* moja\n* mbili\n{| class=\"x\"\n|-\n| a || b\n|}\n\
[[Picha:a.jpg|thumb|[[paka]] mmoja]] na &amp;nbsp; [http://x.y z]\n\n&lt;math&gt;x^2&lt;/math&gt; ''mwisho'' wa habari hii yote.</text></revision></page>\
<page><title>B</title><ns>0</ns><redirect title=\"Paka\"/><revision><text>#REDIRECT [[Paka]]</text></revision></page></mediawiki>\n";

fn zipped(members: &[(&str, &[u8])]) -> std::io::Result<Vec<u8>> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in members {
        writer.start_file(*name, SimpleFileOptions::default())?;
        writer.write_all(bytes)?;
    }
    Ok(writer.finish()?.into_inner())
}

fn tar_gz() -> std::io::Result<Vec<u8>> {
    let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut archive = tar::Builder::new(gzip);
    let text = "fr:Paris\tB-LOC\nfr:est\tO\n\nfr:Ada\tB-PER\n";
    for name in ["train", "dev", "test"] {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, text.as_bytes())?;
    }
    archive.into_inner()?.finish()
}
