//! The page as one file that can be sent: the answers for one run are inside, and nothing is asked of any server.
//!
//! The export asks the [`Explorer`] what the page would ask, and files each answer under the key of its request; the page looks there
//! first. What can be typed freely on a served page is offered here for the first sentences alone. Of a laboratory the verdicts and their figures are
//! inside too, in light colours, as many figures as a file that is sent can hold.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::error::{ApiFailure, ApiResult, ExploreError};
use crate::explorer::Explorer;
use crate::page;
use crate::request::{ApiAnswer, ApiRequest, JSON};

/// Pairs of sentences whose neighbours are inside, and whose translations.
const WITH_NEIGHBOURS: usize = 24;
const TRANSLATED: usize = 6;
const NEIGHBOURS: &str = "10";
/// What can be done to the vectors, with the planes of each.
const MODES: [(&str, &str); 4] =
    [("raw", "pca"), ("centered", "pca"), ("aligned", "pca"), ("raw", "difference")];
/// Bytes of the figures that are inside, at most.
const FIGURES: usize = 8 << 20;
/// The weights of a shift, from 0 to 1.5 by tenths: the page's slider.
pub(crate) const ALPHAS: &str = "0,0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1,1.1,1.2,1.3,1.4,1.5";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExploreExport {
    pub out: PathBuf,
    /// The run's name, or the laboratory's where it has no runs.
    pub run: String,
    /// Figures of studies that would make the file too large, and are not inside.
    pub figures_left_out: usize,
    pub answers: usize,
    /// How many of them say why there is none, though there should be one.
    pub failed: usize,
    /// What the first of those says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_failure: Option<String>,
    pub bytes: usize,
}

/// Answers by the keys of their requests.
struct Bakery<'a> {
    explorer: &'a Explorer,
    answers: Map<String, Value>,
    failed: usize,
    /// The first failure: its status and what it says.
    first_failure: Option<(u16, String)>,
}

impl Bakery<'_> {
    /// Files an answer; where there is none, the page shows why.
    fn bake(&mut self, path: &str, parameters: &[(&str, &str)]) -> Option<Value> {
        let owned = parameters.iter().map(|(name, value)| (*name, (*value).to_owned()));
        let request = ApiRequest::new(path, owned);
        let answer = self.ask(&request);
        let value = stored(&answer);
        let parsed = (answer.status == 200).then(|| value["json"].clone());
        self.answers.insert(request.key(), value);
        parsed
    }

    /// An answer, which is counted where it is a failure.
    fn ask(&mut self, request: &ApiRequest) -> ApiAnswer {
        let answer = self.explorer.answer(request);
        if answer.status != 200 && answer.status != ABSENT {
            self.failed += 1;
            let says: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
            let says = format!("{}: {}", request.path, says["error"].as_str().unwrap_or("?"));
            self.first_failure.get_or_insert((answer.status, says));
        }
        answer
    }
}

/// The status of what is not there, and need not be: language means that nobody has computed.
const ABSENT: u16 = 404;

/// An answer as the page finds it.
fn stored(answer: &ApiAnswer) -> Value {
    let headers: Map<String, Value> =
        answer.headers.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    match answer.kind {
        JSON => {
            let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
            json!({ "status": answer.status, "headers": headers, "json": body })
        }
        _ => {
            let body = BASE64_STANDARD.encode(&answer.body);
            json!({ "status": answer.status, "headers": headers, "kind": answer.kind, "base64": body })
        }
    }
}

/// Writes the page with the first run of what was opened inside, and the studies of a laboratory.
///
/// # Errors
/// Where there is no run, it cannot be read, or the file cannot be written.
pub fn export(explorer: &Explorer, out: &Path) -> Result<ExploreExport, ExploreError> {
    let mut bakery = Bakery { explorer, answers: Map::new(), failed: 0, first_failure: None };
    let laboratory = explorer.laboratory().ok().map(|root| root.display().to_string());
    let run = match (explorer.first_run(), &laboratory) {
        (Ok(id), _) => Some((id.clone(), bake_run(&mut bakery, &id)?)),
        (Err(_), Some(_)) => None,
        (Err(failure), None) => return Err(failure.into()),
    };
    let figures_left_out = if laboratory.is_some() { bake_studies(&mut bakery)? } else { 0 };
    let other = match explorer.run_beside().filter(|_| run.is_some()) {
        Some(id) => Some((id.clone(), bake_beside(&mut bakery, &id)?)),
        None => None,
    };
    let list: Vec<Value> =
        run.iter().chain(&other).map(|(id, name)| json!({ "id": id, "name": name })).collect();
    let runs = json!({ "status": 200, "headers": {}, "json": {
        "runs": list, "laboratory": &laboratory, "beside": other.as_ref().map(|(id, _)| id), "version": env!("CARGO_PKG_VERSION"),
    } });
    bakery.answers.insert(ApiRequest::new("/api/runs", []).key(), runs);
    let name = run.map(|(_, name)| name).or(laboratory).unwrap_or_default();
    let Bakery { answers, failed, first_failure, .. } = bakery;
    let count = answers.len();
    // Markup within a string of JSON must not end the script.
    let data = serde_json::to_string(&answers)
        .map_err(ApiFailure::from)?
        .replace('<', "\\u003c")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029");
    let script = page::SCRIPT.replace("</script", "<\\/script");
    let policy = format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src '{}'; style-src '{}'; \
         img-src data:\">",
        digest(&script),
        digest(page::STYLE),
    );
    let html = page::MARKUP
        .replace(page::STYLE_LINK, &format!("{policy}\n<style>{}</style>", page::STYLE))
        .replace(
            page::SCRIPT_LINK,
            &format!(
                "<script type=\"application/json\" id=\"baked\">{data}</script>\n<script type=\"module\">{script}</script>"
            ),
        );
    files::write(out, &html).map_err(ApiFailure::from)?;
    let bytes = html.len();
    let out = out.to_owned();
    Ok(ExploreExport {
        out,
        run: name,
        figures_left_out,
        answers: count,
        failed,
        first_failure: first_failure.map(|(_, says)| says),
        bytes,
    })
}

fn digest(text: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(text.as_bytes())))
}

/// Files the verdicts of a laboratory, and figures with their numbers until they are too many; gives how many are left out.
fn bake_studies(bakery: &mut Bakery<'_>) -> ApiResult<usize> {
    let key = ApiRequest::new("/api/findings", []).key();
    let Some(mut findings) = bakery.bake("/api/findings", &[]) else { return Ok(0) };
    let mut room = FIGURES;
    let all = findings["figures"].as_array().cloned().unwrap_or_default();
    let count = all.len();
    let mut inside = Vec::new();
    for figure in all {
        let id = figure["id"].as_str().unwrap_or_default().to_owned();
        let (mut size, mut answers) = (0, Vec::new());
        for ending in ["svg", "csv"] {
            let request = ApiRequest::new(&format!("/api/figure/{id}.{ending}"), []);
            let answer = bakery.ask(&request);
            size += answer.body.len() * 4 / 3;
            answers.push((request.key(), stored(&answer)));
        }
        // Smaller ones may still have room.
        if size <= room {
            room -= size;
            bakery.answers.extend(answers);
            inside.push(figure);
        }
    }
    let left_out = count - inside.len();
    findings["figures"] = Value::Array(inside);
    findings["left_out"] = json!(left_out);
    bakery.answers[&key]["json"] = findings;
    Ok(left_out)
}

/// Files all answers for a run and its first pair of languages; gives the run's name.
fn bake_run(bakery: &mut Bakery<'_>, id: &str) -> ApiResult<String> {
    let run = ("run", id);
    let Some(overview) = bakery.bake("/api/run", &[run]) else {
        let none = "the run has saved no states, so that there is nothing to export";
        let failed = bakery.first_failure.take().filter(|(status, _)| *status >= 500);
        return Err(failed.map_or_else(
            || ApiFailure::request(none),
            |(status, message)| ApiFailure { status, message },
        ));
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if overview["given"] != true {
        // Of states that a run has saved, what is noted are files that cannot be read.
        for note in overview["notes"].as_array().into_iter().flatten() {
            bakery.failed += 1;
            bakery.first_failure.get_or_insert((500, text(note)));
        }
    }
    let (name, pair) = (text(&overview["name"]), text(&overview["pair"]));
    let here = [run, ("pair", pair.as_str())];
    bakery.bake("/api/run", &here);
    let items = bakery.bake("/api/items", &here).unwrap_or_default();
    let last = overview["steps"].as_array().and_then(|steps| steps.last()).cloned();
    let step = last.unwrap_or_default().to_string();
    let layers = overview["layers"].as_u64().unwrap_or(0);
    bake_space(bakery, here, layers);
    for layer in numbers(layers) {
        let at = [here[0], here[1], ("layer", layer.as_str())];
        for (mode, proj) in MODES {
            let view = [("mode", mode), ("proj", proj), ("view", "space"), ("step", &step)];
            bakery.bake("/api/command", &[&at[..], &view].concat());
        }
        bakery.bake("/api/command", &[&at[..], &[("view", "emergence"), ("step", &step)]].concat());
        for mode in ["raw", "centered"] {
            bakery.bake("/api/errors", &[&at[..], &[("mode", mode), ("step", &step)]].concat());
        }
    }
    bakery.bake("/api/cka", &[here[0], here[1], ("step", &step)]);
    bakery.bake("/api/command", &[here[0], here[1], ("step", &step), ("view", "layers")]);
    bake_sentences(bakery, &here, &items, &step, layers);
    if overview["has_steps"] == true {
        bake_words(bakery, &here, &step, layers);
    }
    Ok(name)
}

/// Files the space of a run that is shown beside the first; gives the run's name.
fn bake_beside(bakery: &mut Bakery<'_>, id: &str) -> ApiResult<String> {
    let run = ("run", id);
    let none = || ApiFailure::request("the second run has saved no states that could be shown");
    let overview = bakery.bake("/api/run", &[run]).ok_or_else(none)?;
    let text = |name: &str| overview[name].as_str().unwrap_or_default().to_owned();
    let pair = text("pair");
    let here = [run, ("pair", pair.as_str())];
    bakery.bake("/api/items", &here);
    bake_space(bakery, here, overview["layers"].as_u64().unwrap_or(0));
    Ok(text("name"))
}

/// Files what is measured at every layer, and where the points are.
fn bake_space(bakery: &mut Bakery<'_>, here: [(&str, &str); 2], layers: u64) {
    for layer in numbers(layers) {
        let at = [here[0], here[1], ("layer", layer.as_str())];
        bakery.bake("/api/metrics", &at);
        for (mode, proj) in MODES {
            bakery.bake("/api/points", &[&at[..], &[("mode", mode), ("proj", proj)]].concat());
        }
        for mode in ["raw", "centered"] {
            bakery.bake("/api/ranks", &[&at[..], &[("mode", mode)]].concat());
        }
    }
}

/// Files the words, and the neighbours of the first of them.
fn bake_words(bakery: &mut Bakery<'_>, here: &[(&str, &str)], step: &str, layers: u64) {
    let here = [here, &[("kind", "words")]].concat();
    let Some(items) = bakery.bake("/api/items", &here) else { return };
    for layer in numbers(layers) {
        for (mode, proj) in MODES.into_iter().filter(|(mode, _)| *mode != "aligned") {
            let at = [("layer", layer.as_str()), ("mode", mode), ("proj", proj)];
            bakery.bake("/api/points", &[&here[..], &at].concat());
            let view = [("view", "space"), ("step", step)];
            bakery.bake("/api/command", &[&here[..], &at, &view].concat());
        }
    }
    for side in 0..2 {
        bake_neighbours(bakery, &here, &items, side, step);
    }
}

fn numbers(layers: u64) -> impl Iterator<Item = String> {
    (0..layers).map(|layer| layer.to_string())
}

fn code(items: &Value, side: usize) -> &str {
    items["languages"][side]["code"].as_str().unwrap_or_default()
}

/// The first sentences or words of a language.
fn texts(items: &Value, side: usize, most: usize) -> impl Iterator<Item = &str> {
    let all = items["texts"][side].as_array().into_iter().flatten();
    all.filter_map(Value::as_str).take(most)
}

/// Files the neighbours of the first sentences or words of a language.
fn bake_neighbours(
    bakery: &mut Bakery<'_>,
    here: &[(&str, &str)],
    items: &Value,
    side: usize,
    step: &str,
) {
    for text in texts(items, side, WITH_NEIGHBOURS) {
        for mode in ["raw", "centered"] {
            let asked = [("lang", code(items, side)), ("text", text), ("k", NEIGHBOURS)];
            let all = [here, &asked, &[("mode", mode), ("step", step)]].concat();
            bakery.bake("/api/neighbours", &all);
            bakery.bake("/api/command", &[&all[..], &[("view", "neighbours")]].concat());
        }
    }
}

/// Files what is asked about single sentences.
fn bake_sentences(
    bakery: &mut Bakery<'_>,
    here: &[(&str, &str)],
    items: &Value,
    step: &str,
    layers: u64,
) {
    for side in 0..2 {
        bake_neighbours(bakery, here, items, side, step);
        let direction = [("from", code(items, side)), ("to", code(items, 1 - side))];
        let shift = [("alphas", ALPHAS), ("kind", "mean"), ("step", step)];
        for text in texts(items, side, TRANSLATED) {
            for layer in numbers(layers) {
                let asked = [("layer", layer.as_str()), ("text", text)];
                let all = [here, &direction, &asked, &shift].concat();
                bakery.bake("/api/translate", &all);
                bakery.bake("/api/command", &[&all[..], &[("view", "shift")]].concat());
            }
        }
    }
}
