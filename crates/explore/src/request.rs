//! A request and its answer, apart from how they travel: the server reads them from a socket, the export asks by itself.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde::Serialize;
use serde_json::Value;

use crate::error::{ApiFailure, ApiResult};

/// A request of the page: a path, and parameters by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiRequest {
    pub path: String,
    /// The parameters of the address or, of a POST, the members of its JSON object; lists are joined by commas.
    pub parameters: BTreeMap<String, String>,
}

impl ApiRequest {
    pub fn new<'a>(
        path: &str,
        parameters: impl IntoIterator<Item = (&'a str, String)>,
    ) -> ApiRequest {
        let parameters =
            parameters.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Self { path: path.to_owned(), parameters }
    }

    pub(crate) fn of_address(address: &str) -> Self {
        let (path, query) = address.split_once('?').unwrap_or((address, ""));
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let pair = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name), decoded(value))
        };
        Self { path: decoded(path), parameters: pairs.map(pair).collect() }
    }

    /// From the path and the body of a POST.
    pub(crate) fn of_body(address: &str, body: &[u8]) -> ApiResult<Self> {
        let wrong = || ApiFailure::request("the body is not one JSON object");
        let body: serde_json::Map<String, Value> =
            serde_json::from_slice(body).map_err(|_| wrong())?;
        let plain = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let text = |value: Value| match value {
            Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(","),
            value => plain(&value),
        };
        let parameters = body.into_iter().map(|(name, value)| (name, text(value))).collect();
        Ok(Self { path: Self::of_address(address).path, parameters })
    }

    /// What distinguishes it from other requests: the path and all parameters in the order of their names.
    pub(crate) fn key(&self) -> String {
        let pairs: Vec<String> =
            self.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
        format!("{}?{}", self.path, pairs.join("&"))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    pub(crate) fn text(&self, name: &str) -> ApiResult<&str> {
        self.get(name).ok_or_else(|| ApiFailure::request(format!("`{name}` is missing")))
    }

    pub(crate) fn number<T: FromStr>(&self, name: &str) -> ApiResult<Option<T>> {
        let parse = |text: &str| {
            text.parse().map_err(|_| ApiFailure::request(format!("{name}={text} is not a number")))
        };
        self.get(name).map(parse).transpose()
    }

    pub(crate) fn choice<T: Copy>(&self, name: &str, all: &[(&str, T)]) -> ApiResult<T> {
        let Some(asked) = self.get(name) else { return Ok(all[0].1) };
        let found = all.iter().find(|(known, _)| *known == asked);
        found.map(|(_, value)| *value).ok_or_else(|| {
            let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
            ApiFailure::request(format!("{name} is one of {}", names.join(", ")))
        })
    }
}

/// Text as it was before it became part of an address.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = || u8::from_str_radix(text.get(at + 1..at + 3)?, 16).ok();
        match bytes[at] {
            b'%' if escaped().is_some() => {
                out.extend(escaped());
                at += 3;
            }
            b'+' => {
                out.push(b' ');
                at += 1;
            }
            byte => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiAnswer {
    pub status: u16,
    pub kind: &'static str,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

pub(crate) const JSON: &str = "application/json; charset=utf-8";
pub(crate) const PLAIN: &str = "text/plain; charset=utf-8";

impl ApiAnswer {
    pub(crate) fn of(kind: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self { status: 200, kind, headers: Vec::new(), body: body.into() }
    }

    /// A value as JSON, in the digits that `--json` prints.
    pub(crate) fn json(value: &impl Serialize) -> Self {
        let value = serde_json::to_value(value).expect("a result of ours is always valid JSON");
        Self::of(JSON, value.to_string())
    }

    pub(crate) fn status(self, status: u16) -> Self {
        Self { status, ..self }
    }
}

impl From<ApiFailure> for ApiAnswer {
    fn from(failure: ApiFailure) -> Self {
        Self::json(&serde_json::json!({ "error": failure.message })).status(failure.status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_decoded_and_bodies_are_parameters() {
        let request = ApiRequest::of_address("/api/x?b=a%20b+c&a=%C3%A9%zz&&c");
        assert_eq!(request.key(), "/api/x?a=é%zz&b=a b c&c=");
        assert_eq!((request.get("b"), request.get("c")), (Some("a b c"), None));
        let body = br#"{"text":"a, b","alphas":[0,0.5],"k":10}"#;
        let request = ApiRequest::of_body("/api/y", body).unwrap();
        assert_eq!(request.key(), "/api/y?alphas=0,0.5&k=10&text=a, b");
        assert!(ApiRequest::of_body("/api/y", b"[1]").is_err());
        assert!(request.number::<usize>("text").is_err());
        assert_eq!(request.choice("none", &[("a", 1), ("b", 2)]).unwrap(), 1);
        assert!(request.choice("k", &[("a", 1)]).is_err());
    }
}
