//! Infinities and NaN in files. JSON has no form for them, and `serde_json` writes `null`, which cannot be
//! read again; here they are the strings `inf`, `-inf` and `nan`, wherever a field says
//! `#[serde(with = "terms::number")]`. Finite numbers are numbers, and `null` (of older files) is read as NaN.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeOwned, Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number in the form that files have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FileNumber(pub f64);

impl Serialize for FileNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            number if number.is_finite() => serializer.serialize_f64(number),
            number if number.is_nan() => serializer.serialize_str("nan"),
            number if number > 0.0 => serializer.serialize_str("inf"),
            _ => serializer.serialize_str("-inf"),
        }
    }
}

impl<'de> Deserialize<'de> for FileNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Form;
        impl Visitor<'_> for Form {
            type Value = f64;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, \"inf\", \"-inf\" or \"nan\"")
            }

            fn visit_f64<E>(self, number: f64) -> Result<f64, E> {
                Ok(number)
            }

            fn visit_u64<E>(self, number: u64) -> Result<f64, E> {
                Ok(number as f64)
            }

            fn visit_i64<E>(self, number: i64) -> Result<f64, E> {
                Ok(number as f64)
            }

            fn visit_unit<E>(self) -> Result<f64, E> {
                Ok(f64::NAN)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<f64, E> {
                match text {
                    "inf" => Ok(f64::INFINITY),
                    "-inf" => Ok(f64::NEG_INFINITY),
                    "nan" => Ok(f64::NAN),
                    _ => Err(E::invalid_value(serde::de::Unexpected::Str(text), &self)),
                }
            }
        }
        deserializer.deserialize_any(Form).map(FileNumber)
    }
}

/// Numbers, or what is made of numbers.
pub trait Numbers: Sized {
    /// The same in the form that files have.
    type Form: Serialize + DeserializeOwned;
    /// To that form.
    fn to_form(&self) -> Self::Form;
    /// From that form.
    fn from_form(form: Self::Form) -> Self;
}

impl Numbers for f64 {
    type Form = FileNumber;

    fn to_form(&self) -> FileNumber {
        FileNumber(*self)
    }

    fn from_form(form: FileNumber) -> f64 {
        form.0
    }
}

impl<T: Numbers> Numbers for Vec<T> {
    type Form = Vec<T::Form>;

    fn to_form(&self) -> Self::Form {
        self.iter().map(T::to_form).collect()
    }

    fn from_form(form: Self::Form) -> Self {
        form.into_iter().map(T::from_form).collect()
    }
}

impl<T: Numbers> Numbers for BTreeMap<String, T> {
    type Form = BTreeMap<String, T::Form>;

    fn to_form(&self) -> Self::Form {
        self.iter().map(|(name, value)| (name.clone(), value.to_form())).collect()
    }

    fn from_form(form: Self::Form) -> Self {
        form.into_iter().map(|(name, value)| (name, T::from_form(value))).collect()
    }
}

/// For `#[serde(with = "terms::number")]`.
pub fn serialize<T: Numbers, S: Serializer>(numbers: &T, serializer: S) -> Result<S::Ok, S::Error> {
    numbers.to_form().serialize(serializer)
}

/// For `#[serde(with = "terms::number")]`.
pub fn deserialize<'de, T: Numbers, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    T::Form::deserialize(deserializer).map(T::from_form)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Serialize, Deserialize)]
    struct Record {
        #[serde(with = "super")]
        one: f64,
        #[serde(with = "super")]
        each: BTreeMap<String, Vec<f64>>,
    }

    #[test]
    fn infinities_and_nan_come_back() {
        let numbers = vec![1.0, 0.1, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
        for one in numbers.clone() {
            let record = Record { one, each: BTreeMap::from([("en".into(), numbers.clone())]) };
            let json = serde_json::to_string(&record).unwrap();
            let back: Record = serde_json::from_str(&json).unwrap();
            let bits = |numbers: &[f64]| numbers.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!(back.one.to_bits(), one.to_bits(), "{json}");
            assert_eq!(bits(&back.each["en"]), bits(&numbers), "{json}");
        }
    }

    #[test]
    fn finite_numbers_are_as_before_and_null_is_nan() {
        let json = r#"{"one":2,"each":{"en":[null,-3,1.5]}}"#;
        let record: Record = serde_json::from_str(json).unwrap();
        assert!(record.one == 2.0 && record.each["en"][0].is_nan());
        let json = serde_json::to_string(&Record { one: 0.5, each: BTreeMap::new() }).unwrap();
        assert_eq!(json, r#"{"one":0.5,"each":{}}"#);
        serde_json::from_str::<Record>(r#"{"one":"much","each":{}}"#).unwrap_err();
    }
}
