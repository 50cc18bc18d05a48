//! The page as one file that can be sent: the answers for one run are inside, and nothing is asked of any server.
//!
//! The export asks the [`Explorer`] what the page would ask, and files each answer under the key of its request; the page looks there
//! first. What can be typed freely on a served page is offered here for the first sentences alone.

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
/// Neighbours of each.
const NEIGHBOURS: &str = "10";
/// The weights of a shift, from 0 to 1.5 by tenths: the page's slider.
pub(crate) const ALPHAS: &str = "0,0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1,1.1,1.2,1.3,1.4,1.5";

/// What came of an export.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExploreExport {
    /// The page.
    pub out: PathBuf,
    /// The run's name.
    pub run: String,
    /// Answers inside.
    pub answers: usize,
    /// Bytes of the page.
    pub bytes: usize,
}

/// Answers by the keys of their requests.
struct Bakery<'a> {
    explorer: &'a Explorer,
    answers: Map<String, Value>,
}

impl Bakery<'_> {
    /// Files an answer; where there is none, the page shows why.
    fn bake(&mut self, path: &str, parameters: &[(&str, &str)]) -> Option<Value> {
        let owned = parameters.iter().map(|(name, value)| (*name, (*value).to_owned()));
        let request = ApiRequest::new(path, owned);
        let answer = self.explorer.answer(&request);
        let value = stored(&answer);
        let parsed = (answer.status == 200).then(|| value["json"].clone());
        self.answers.insert(request.key(), value);
        parsed
    }
}

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
            json!({ "status": answer.status, "headers": headers, "base64": body })
        }
    }
}

/// Writes the page with the first run of what was opened inside.
///
/// # Errors
/// Where there is no run, it cannot be read, or the file cannot be written.
pub fn export(explorer: &Explorer, out: &Path) -> Result<ExploreExport, ExploreError> {
    let mut bakery = Bakery { explorer, answers: Map::new() };
    let name = bake_run(&mut bakery)?;
    let answers = bakery.answers;
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
    Ok(ExploreExport { out: out.to_owned(), run: name, answers: count, bytes: html.len() })
}

fn digest(text: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(text.as_bytes())))
}

/// Files all answers for the first run and its first pair of languages; gives the run's name.
fn bake_run(bakery: &mut Bakery<'_>) -> ApiResult<String> {
    let id = bakery.explorer.first_run()?;
    let run = ("run", id.as_str());
    let overview = bakery.bake("/api/run", &[run]).ok_or_else(|| {
        ApiFailure::request("the run has saved no states, so that there is nothing to export")
    })?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (name, pair) = (text(&overview["name"]), text(&overview["pair"]));
    let runs = json!({ "status": 200, "headers": {}, "json": {
        "runs": [{ "id": id, "name": name }], "laboratory": Value::Null, "baked": true,
        "version": env!("CARGO_PKG_VERSION"),
    } });
    bakery.answers.insert(ApiRequest::new("/api/runs", []).key(), runs);
    let here = [run, ("pair", pair.as_str())];
    bakery.bake("/api/run", &here);
    let items = bakery.bake("/api/items", &here).unwrap_or_default();
    let last = overview["steps"].as_array().and_then(|steps| steps.last()).cloned();
    let step = last.unwrap_or_default().to_string();
    let layers = overview["layers"].as_u64().unwrap_or(0);
    for layer in (0..layers).map(|layer| layer.to_string()) {
        let at = [here[0], here[1], ("layer", layer.as_str())];
        bakery.bake("/api/metrics", &at);
        for (mode, proj) in
            [("raw", "pca"), ("centered", "pca"), ("aligned", "pca"), ("raw", "difference")]
        {
            bakery.bake("/api/points", &[&at[..], &[("mode", mode), ("proj", proj)]].concat());
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
    Ok(name)
}

/// Files what is asked about single sentences.
fn bake_sentences(
    bakery: &mut Bakery<'_>,
    here: &[(&str, &str)],
    items: &Value,
    step: &str,
    layers: u64,
) {
    let code =
        |side: usize| items["languages"][side]["code"].as_str().unwrap_or_default().to_owned();
    let codes = [code(0), code(1)];
    for (side, lang) in codes.iter().enumerate() {
        let texts: Vec<String> = items["texts"][side]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|text| Some(text.as_str()?.to_owned()))
            .collect();
        for text in texts.iter().take(WITH_NEIGHBOURS) {
            for mode in ["raw", "centered"] {
                let asked = [("lang", lang.as_str()), ("text", text), ("k", NEIGHBOURS)];
                let all = [here, &asked, &[("mode", mode), ("step", step)]].concat();
                bakery.bake("/api/neighbours", &all);
                bakery.bake("/api/command", &[&all[..], &[("view", "neighbours")]].concat());
            }
        }
        let other = &codes[1 - side];
        for text in texts.iter().take(TRANSLATED) {
            for layer in (0..layers).map(|layer| layer.to_string()) {
                let asked = [
                    ("from", lang.as_str()),
                    ("to", other.as_str()),
                    ("layer", layer.as_str()),
                    ("text", text),
                    ("alphas", ALPHAS),
                    ("kind", "mean"),
                    ("step", step),
                ];
                let all = [here, &asked].concat();
                bakery.bake("/api/translate", &all);
                bakery.bake("/api/command", &[&all[..], &[("view", "shift")]].concat());
            }
        }
    }
}
