//! Names that a shell, Slurm or Python would obey, through the generated scripts, which are run.

use std::fs;
use std::path::Path;
use std::process::Command;

use terms::Scale;

use super::StepGraph;
use super::slurm::{self, JobOptions};
use crate::study::{CPU, Laboratory, StepId, Study, StudyPlan, StudyStep};

/// What a shell, Python, Slurm or Snakemake gives a meaning to.
const HOSTILE: &str = r#"a b$(touch PWNED)`touch PWNED`'"\{x}%j;é猫 #!&"#;

/// A study of this name with a system of this name.
fn plan(folder: &Path, name: &str, system: &str) -> crate::study::Result<StudyPlan> {
    let file = folder.join(format!("{name}.toml"));
    let system = toml::Value::from(system);
    let text = format!(
        "question = \"?\"\nevaluate = [\"retrieval\"]\n[[systems]]\nfactors = {{ system = {system} }}\n"
    );
    fs::write(&file, text).unwrap();
    let study = Study::find(file.to_str().unwrap())?;
    StudyPlan::of(&study, Scale::Tiny, CPU, &mut |_, _, most| Ok(most))
}

/// The words that a script gives to the program, which writes them down.
fn words(folder: &Path, script: &[&str]) -> Vec<String> {
    let heard = folder.join("heard");
    let _ = fs::remove_file(&heard);
    let mut bash = Command::new("bash");
    bash.args(script).current_dir(folder).env("SLURM_ARRAY_TASK_ID", "1").env("HEARD", &heard);
    let output = bash.output().unwrap();
    assert!(output.status.success(), "{script:?}: {output:?}");
    assert!(!folder.join("PWNED").exists(), "{script:?}");
    let heard = fs::read_to_string(heard).unwrap();
    heard.split_terminator('\0').map(str::to_owned).collect()
}

#[test]
fn hostile_names_stay_names_in_every_script() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join(HOSTILE.replace('/', ""));
    fs::create_dir(&folder).unwrap();
    let program = folder.join("isogloss");
    fs::write(&program, "#!/bin/sh\nprintf '%s\\0' \"$@\" > \"$HEARD\"\n").unwrap();
    Command::new("chmod").arg("+x").arg(&program).status().unwrap();
    let graph = StepGraph::of(&[plan(place.path(), HOSTILE, HOSTILE).unwrap()]);
    let lab = Laboratory::open(&folder).unwrap();
    let options = JobOptions { partition: Some(HOSTILE.to_owned()), ..JobOptions::default() };
    let collect = ["study".to_owned(), HOSTILE.to_owned()];
    let made = slurm::submit(&lab, &graph, &options, &program, &collect, true).unwrap();
    let lab_path = folder.to_str().unwrap();
    for array in &made.arrays {
        let script = made.folder.join(&array.script);
        let of = made.folder.join("graph.json");
        let step = ["study", "step", &array.keys[0], "--graph", of.to_str().unwrap()];
        let heard = words(place.path(), &[script.to_str().unwrap()]);
        assert_eq!(heard, [&step[..], &["--lab", lab_path]].concat());
        // Slurm takes its lines apart as a shell does.
        let script = fs::read_to_string(script).unwrap();
        let of_slurm = |line: &str| line.strip_prefix("#SBATCH ").map(str::to_owned);
        let lines: Vec<String> = script.lines().filter_map(of_slurm).collect();
        let line = format!("printf '%s\\0' {} > \"$HEARD\"", lines.join(" "));
        let read = words(place.path(), &["-c", &line]);
        let kind = array.script.trim_end_matches(".sh");
        let logs = made.folder.join("logs").to_str().unwrap().replace('%', "%%");
        assert_eq!(read[0], format!("--job-name={HOSTILE}-{kind}"));
        assert_eq!(read[1], format!("--output={logs}/%x-%A_%a.log"));
        assert_eq!(read[2], format!("--partition={HOSTILE}"));
        assert_eq!(read.len(), lines.len());
    }
    let script = made.folder.join("collect.sh");
    assert_eq!(words(place.path(), &[script.to_str().unwrap()]), collect);
    let file = lab.save_graph(&graph).unwrap();
    let snakefile = graph.snakefile(&lab, &file, program.to_str().unwrap());
    let text = |line: &str| {
        let text: String = serde_json::from_str(line).unwrap();
        let (open, close) = (text.matches("{{").count(), text.matches("}}").count());
        assert_eq!(text.matches(['{', '}']).count(), 2 * (open + close), "{text}");
        text.replace("{{", "{").replace("}}", "}")
    };
    let shells: Vec<String> = snakefile
        .lines()
        .filter_map(|line| line.trim().strip_prefix("shell: ").map(text))
        .collect();
    assert_eq!(shells.len(), graph.steps.len());
    for (shell, step) in shells.iter().zip(&graph.steps) {
        let heard = words(place.path(), &["-c", shell]);
        assert_eq!(heard[..3], ["study", "step", &step.key]);
        assert_eq!(heard[3..], ["--graph", file.to_str().unwrap(), "--lab", lab_path]);
    }
    let outputs = snakefile.lines().filter_map(|line| line.trim().strip_prefix("output: "));
    for (output, step) in outputs.zip(&graph.steps) {
        assert_eq!(text(output), lab.result_path(&step.key).to_str().unwrap());
    }
}

#[test]
fn a_graph_whose_steps_need_what_is_not_there_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let graph = StepGraph::of(&[plan(place.path(), "a", "a").unwrap()]);
    let file = place.path().join("graph.json");
    let last = graph.steps.len() - 1;
    let forgeries: [fn(&mut StudyStep, usize); 2] =
        [|step, last| step.needs = vec![StepId(last + 1)], |step, _| step.key = "../../x".into()];
    for forge in forgeries {
        let mut forged = graph.clone();
        forge(&mut forged.steps[last], last);
        forged.save(&file).unwrap();
        let refused = StepGraph::read(&file).unwrap_err().to_string();
        assert!(refused.contains("needs one that does not come before it"), "{refused}");
    }
    graph.save(&file).unwrap();
    StepGraph::read(&file).unwrap();
}

#[test]
fn a_name_that_would_end_its_line_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let bad = "a\ntouch PWNED\n#";
    for (name, system) in [(bad, "a"), ("a", bad), ("a", "b\r"), ("a", "\u{1b}[2J")] {
        let error = plan(place.path(), name, system).err().unwrap().to_string();
        assert!(error.contains("has a control character"), "{error}");
    }
    let lab = place.path().join(bad);
    assert!(Laboratory::open(&lab).is_err());
    let graph = StepGraph::of(&[plan(place.path(), "a", "a").unwrap()]);
    let lab = Laboratory::open(place.path()).unwrap();
    let options = JobOptions { account: Some(bad.to_owned()), ..JobOptions::default() };
    slurm::submit(&lab, &graph, &options, Path::new("isogloss"), &[], true).unwrap_err();
    // Whatever the names of a graph are, a comment ends where its line does.
    let mut forged = graph;
    forged.steps[0].name = bad.to_owned();
    forged.studies[0] = bad.to_owned();
    let file = lab.save_graph(&forged).unwrap();
    let snakefile = forged.snakefile(&lab, &file, "isogloss");
    assert!(!snakefile.lines().any(|line| line.starts_with("touch")), "{snakefile}");
    let options = JobOptions::default();
    let made = slurm::submit(&lab, &forged, &options, Path::new("true"), &[], true).unwrap();
    let script = fs::read_to_string(made.folder.join("level-0-cpu.sh")).unwrap();
    assert!(!script.lines().any(|line| line.starts_with("touch")), "{script}");
}
