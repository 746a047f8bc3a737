//! The schema of errands accepts exactly the files that load without a violation. The library's own formats have the
//! same property.

use agent_checkpoint::json::{Code, Document};
use agent_checkpoint::schema::schema;
use agent_checkpoint::strategies::{Examine, any_shape};
use proptest::prelude::*;

use crate::Errand;

proptest! {
    #[test]
    fn the_schema_accepts_what_loads_without_a_violation(text in any_shape::<Errand>()) {
        // A validator reads numbers as f64; a number beyond that is invalid.
        let value = serde_json::from_str::<serde_json::Value>(&text);
        let Ok(value) = value.and_then(|value| serde_json::to_value(in_f64(value))) else {
            return Ok(());
        };
        let document = Document::from_text(value.to_string())?;
        let violations = Errand::examine(&document).unwrap_or_default();
        let loads = violations.iter().all(|it| it.code == Code::FUTURE_TIMESTAMP);
        // Times have the format `date-time`, which a validator checks only if configured to.
        let validator = jsonschema::options().should_validate_formats(true);
        let validator = validator.build(&schema::<Errand>()).unwrap();
        let accepts = validator.is_valid(&value);
        prop_assert_eq!(accepts, loads, "{}: {:?}", value, violations);
    }
}

fn in_f64(value: serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::Number(number) if number.is_u64() || number.is_i64() => Value::Number(number),
        Value::Number(number) => number.as_f64().into(),
        Value::Array(elements) => elements.into_iter().map(in_f64).collect(),
        Value::Object(members) => {
            let members = members.into_iter();
            members.map(|(name, value)| (name, in_f64(value))).collect()
        }
        value => value,
    }
}
