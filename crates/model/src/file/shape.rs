//! All keys of a document that are missing, unknown or of another type, by the schema of what it should be.
//!
//! A parser stops at the first of them. Whoever writes a file by hand wants all.

use std::collections::BTreeMap;

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value};

use crate::error::Flaw;

/// Keys that a hint names at the most.
const NAMED: usize = 16;
/// One mistyped word is so far from the right one: letters that differ.
const NEAR: usize = 2;

/// What is wrong with the shape of a document; nothing where it is as `T` is written.
pub(crate) fn flaws<T: JsonSchema>(document: &Value) -> Vec<Flaw> {
    let mut generator = SchemaGenerator::default();
    let schema = generator.subschema_for::<T>().to_value();
    let shapes = Shapes { named: generator.take_definitions(true) };
    shapes.flaws(&schema, document, "")
}

/// Schemas by name.
struct Shapes {
    named: Map<String, Value>,
}

impl Shapes {
    fn flaws(&self, schema: &Value, value: &Value, place: &str) -> Vec<Flaw> {
        let schema = self.followed(schema);
        if let Some(ways) = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(key)?.as_array()) {
            return self.of_nearest(ways, value, place);
        }
        if let Some(only) = schema.get("const") {
            return wrong(value != only, place, || format!("is {value}, not {only}"), || format!("write {only}"));
        }
        let types = type_names(schema);
        if !types.is_empty() && !types.iter().any(|name| is_of(name, value)) {
            let wanted = types.iter().map(|name| in_words(name)).collect::<Vec<_>>().join(" or ");
            return vec![Flaw::new(place, format!("is {}, not {wanted}", told(value)), format!("give {wanted}"))];
        }
        match value {
            Value::Object(entries) => self.of_table(schema, entries, place),
            Value::Array(items) => {
                let Some(shape) = schema.get("items") else { return Vec::new() };
                let of_item = |(at, item)| self.flaws(shape, item, &format!("{place}[{at}]"));
                items.iter().enumerate().flat_map(of_item).collect()
            }
            _ => Vec::new(),
        }
    }

    fn followed<'a>(&'a self, schema: &'a Value) -> &'a Value {
        let name = schema.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next());
        name.and_then(|name| self.named.get(name)).unwrap_or(schema)
    }

    /// Of several shapes that a value may have, the one that it is nearest to.
    fn of_nearest(&self, ways: &[Value], value: &Value, place: &str) -> Vec<Flaw> {
        let words: Vec<&str> = ways.iter().filter_map(|way| self.followed(way).get("const")?.as_str()).collect();
        if let Some(word) = value.as_str().filter(|_| !words.is_empty()) {
            let known = || format!("give one of {}", listed(&words));
            let hint = || near(word, &words).map_or_else(known, |right| format!("did you mean {right}?"));
            return wrong(!words.contains(&word), place, || format!("`{word}` is not known here"), hint);
        }
        let found = ways.iter().map(|way| self.flaws(way, value, place));
        found.min_by_key(Vec::len).unwrap_or_default()
    }

    fn of_table(&self, schema: &Value, entries: &Map<String, Value>, place: &str) -> Vec<Flaw> {
        let none = Map::new();
        let known = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
        let of_others = schema.get("additionalProperties");
        let required: Vec<&str> =
            schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        let names: Vec<&str> = known.keys().map(String::as_str).collect();
        let missing: Vec<&str> = required.into_iter().filter(|key| !entries.contains_key(*key)).collect();
        let is_unknown = |key: &str| !known.contains_key(key) && of_others == Some(&Value::Bool(false));
        let unknown: Vec<&str> = entries.keys().map(String::as_str).filter(|key| is_unknown(key)).collect();
        // A key that is spelt wrongly is not also missing.
        let spelt: BTreeMap<&str, &str> = unknown.iter().filter_map(|key| Some((*key, near(key, &names)?))).collect();
        let meant: Vec<&str> = spelt.values().copied().collect();
        let missing = missing.into_iter().filter(|key| !meant.contains(key));
        let mut flaws: Vec<Flaw> =
            missing.map(|key| Flaw::new(inside(place, key), "is missing", "add the key")).collect();
        for (key, value) in entries {
            match (known.get(key), of_others) {
                (Some(shape), _) => flaws.extend(self.flaws(shape, value, &inside(place, key))),
                (None, Some(Value::Bool(false))) => {
                    let hint = spelt.get(key.as_str()).map_or_else(
                        || format!("remove it; known here are {}", listed(&names)),
                        |right| format!("did you mean {right}?"),
                    );
                    flaws.push(Flaw::new(inside(place, key), "there is no such key", hint));
                }
                (None, Some(shape @ Value::Object(_))) => flaws.extend(self.flaws(shape, value, &inside(place, key))),
                (None, _) => {}
            }
        }
        flaws
    }
}

fn wrong(is_wrong: bool, place: &str, problem: impl Fn() -> String, hint: impl Fn() -> String) -> Vec<Flaw> {
    is_wrong.then(|| Flaw::new(place, problem(), hint())).into_iter().collect()
}

fn inside(place: &str, key: &str) -> String {
    if place.is_empty() { key.to_owned() } else { format!("{place}.{key}") }
}

fn type_names(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn is_of(name: &str, value: &Value) -> bool {
    match name {
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => true,
    }
}

fn in_words(name: &str) -> &str {
    match name {
        "integer" => "a whole number",
        "number" => "a number",
        "string" => "text",
        "boolean" => "true or false",
        "array" => "a list",
        "object" => "a table",
        "null" => "nothing",
        other => other,
    }
}

fn told(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a table".to_owned(),
        Value::String(text) => format!("the text \"{text}\""),
        other => other.to_string(),
    }
}

fn listed(names: &[&str]) -> String {
    let more = if names.len() > NAMED { ", …" } else { "" };
    format!("{}{more}", names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", "))
}

fn near<'a>(word: &str, names: &[&'a str]) -> Option<&'a str> {
    let most = NEAR.min(word.len() / 2);
    let distances = names.iter().map(|name| (distance(word, name), *name));
    distances.filter(|(distance, _)| *distance <= most).min().map(|(_, name)| name)
}

/// Letters to add, leave out or change (Levenshtein).
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.bytes().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], at + 1);
        for (column, against) in other.bytes().enumerate() {
            let changed = corner + usize::from(letter != against);
            corner = row[column + 1];
            row[column + 1] = changed.min(corner + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Machine;

    #[test]
    fn letters_that_differ_are_counted() {
        assert_eq!((distance("idle_ns", "idel_ns"), distance("cores", "core"), distance("", "abc")), (2, 1, 3));
        assert_eq!(near("idel_ns", &["idle_ns", "load"]), Some("idle_ns"));
        assert_eq!(near("x", &["y"]), None, "one letter is near to everything");
    }

    #[test]
    fn each_key_is_told_with_its_place() {
        let document = serde_json::json!({
            "kind": "machine", "version": 1, "nmae": "box", "sources": {"me": 7},
            "sockets": [{"name": 3}], "memories": "none", "paths": [],
        });
        let told: Vec<String> =
            flaws::<Machine>(&document).iter().map(|flaw| format!("{}: {}", flaw.key, flaw.problem)).collect();
        for expected in [
            "nmae: there is no such key",
            "sources.me: is 7, not text",
            "sockets[0].name: is 3, not text",
            "sockets[0].cores: is missing",
            "memories: is the text \"none\", not a list",
        ] {
            assert!(told.iter().any(|line| line == expected), "{expected}: {told:?}");
        }
        assert!(!told.iter().any(|line| line.starts_with("name:")), "it is there, spelt wrongly: {told:?}");
    }
}
