//! Reading `world.toml`, and single keys over it.

use super::WorldConfig;
use crate::error::{self, Error};

impl WorldConfig {
    /// Reads TOML; `origin` is what to call it in an error.
    pub fn from_toml(text: &str, origin: &str) -> Result<Self, Error> {
        let read = toml::from_str::<Self>(text).map_err(|error| error::toml(origin, &error));
        read.map(Self::with_defaults)
    }

    /// The configuration as TOML, which [`WorldConfig::from_toml`] reads back.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a configuration is always valid TOML")
    }

    /// Sets one key, given as in `language.1.order.verb` and `"sov"`. A value that is not TOML is
    /// taken as a string, so quotes can be left out.
    pub fn set(self, key: &str, value: &str) -> Result<Self, Error> {
        let literal = toml::from_str::<toml::Table>(&format!("value = {value}"));
        let parsed = literal.ok().and_then(|mut table| table.remove("value"));
        let value = parsed.unwrap_or_else(|| toml::Value::String(value.to_owned()));
        let mut root =
            toml::Value::try_from(self.with_defaults()).expect("a configuration is valid TOML");
        place(&mut root, key, value)?;
        root.try_into().map_err(|error: toml::de::Error| error::toml(key, &error))
    }
}

fn place(root: &mut toml::Value, key: &str, value: toml::Value) -> Result<(), Error> {
    let mut at = root;
    for part in key.split('.') {
        at = match at {
            toml::Value::Table(table) => {
                table.entry(part).or_insert_with(|| toml::Value::Table(toml::Table::new()))
            }
            toml::Value::Array(list) => {
                let length = list.len();
                let item = part.parse::<usize>().ok().and_then(|i| list.get_mut(i));
                item.ok_or_else(|| {
                    error::config(
                        key,
                        format!("{part:?} is no item of a list of {length}"),
                        "count from 0, and add [[language]] or [[domain]] tables to the file first",
                    )
                })?
            }
            _ => {
                let remedy = "give the path of one key, as in meaning.zipf";
                return Err(error::config(key, "the path goes on below a value", remedy));
            }
        };
    }
    *at = value;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::VerbOrder;

    #[test]
    fn a_resolved_configuration_reads_back_as_itself() {
        let mut config = WorldConfig::default().with_defaults();
        config.language[1].distance = Some(0.5);
        let plan = config.resolve().unwrap();
        let again = WorldConfig::from_toml(&plan.config().to_toml(), "world.toml").unwrap();
        assert_eq!(&again, plan.config());
        assert_eq!(again.resolve().unwrap().languages(), plan.languages());
    }

    #[test]
    fn keys_are_set_by_path() {
        let config = WorldConfig::default();
        let config = config.set("language.1.order.verb", "sov").unwrap();
        let config = config.set("meaning.zipf", "1").unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(config.language[1].order.verb, Some(VerbOrder::Sov));
        assert_eq!(config.meaning.zipf, 1.0);
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        let refused = |key: &str, value: &str| {
            let set = WorldConfig::default().set(key, value);
            set.and_then(WorldConfig::resolve).map(|_| ()).unwrap_err().to_string()
        };
        for (key, value, says) in [
            ("meaning.zpif", "1.0", "zpif"),
            ("meaning.zipf", "nan", "meaning.zipf: NaN is out of range; use 0 to 3"),
            ("meaning.lemmas", "30", "meaning.lemmas: 30 is out of range"),
            ("language.7.anchors", "0.1", "list of 2"),
            ("language.0.anchors", "0.1", "first language"),
            ("language.1.code", "../x", "file name"),
            ("language.1.code", "qaa", "twice"),
            ("language.1.domains", "[\"web\"]", "no domain \"web\""),
            ("layout", "paragraphs", "punctuation"),
            ("seed.x", "1", "below a value"),
        ] {
            let message = refused(key, value);
            assert!(message.contains(says), "{key}: {message}");
        }
        let message = WorldConfig::from_toml("seed = 'x'", "world.toml").unwrap_err().to_string();
        assert!(message.contains("world.toml") && message.contains("line 1"), "{message}");
    }
}
