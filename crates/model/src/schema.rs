//! JSON schemas of the files and answers.

use schemars::{JsonSchema, SchemaGenerator};

use crate::{Comparison, Machine, Plan, Profile};

/// JSON schemas of the nouns' files and of what `plan` answers, by the names of the types: one JSON object.
pub fn schemas() -> String {
    let mut generator = SchemaGenerator::default();
    add::<Machine>(&mut generator);
    add::<Profile>(&mut generator);
    add::<Plan>(&mut generator);
    add::<Comparison>(&mut generator);
    written(generator)
}

/// The schema of one type, with those of what it is made of.
pub fn schemas_of<T: JsonSchema>() -> String {
    let mut generator = SchemaGenerator::default();
    add::<T>(&mut generator);
    written(generator)
}

fn written(mut generator: SchemaGenerator) -> String {
    let found = serde_json::Value::from(generator.take_definitions(true));
    serde_json::to_string_pretty(&found).unwrap_or_else(|error| unreachable!("a schema is always JSON: {error}"))
}

fn add<T: JsonSchema>(generator: &mut SchemaGenerator) {
    generator.subschema_for::<T>();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schemas_beside_the_python_types_are_those_of_the_nouns() {
        let kept = include_str!("../../../python/tierloom/schema/documents.json");
        let again = "cargo run -p tierloom-model --example schemas > python/tierloom/schema/documents.json";
        assert!(kept.trim_end() == schemas(), "{again} && python tools/documents.py");
    }
}
