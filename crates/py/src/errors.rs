//! One map from Rust's errors to Python's: a key, what was found, what was expected, the nearest valid choice.

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::{PyErr, create_exception};

create_exception!(joulepath, PlanError, PyValueError, "A plan or a flag has an impossible value. Arguments: key, sentence.");
create_exception!(joulepath, TraceFileError, PyValueError, "A log or trace cannot be understood.");

/// An error of serde at a path of the plan.
pub(crate) fn plan_error(path: &str, message: &str) -> PyErr {
    let message = message.split(" at line ").next().unwrap_or(message);
    let path = if path == "." { "" } else { path };
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let choices = quoted.get(1..).unwrap_or_default();
    let list = || choices.join(", ");
    let nearest = |found: &str| {
        let likeness = |choice: &str| {
            let part = if found.len() > 2 && choice.contains(found) { 0.9 } else { 0.0 };
            strsim::jaro_winkler(choice, found).max(part)
        };
        let best = choices.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
        best.filter(|b| likeness(b) > 0.6).map_or(String::new(), |b| format!("; did you mean {b:?}?"))
    };
    let join = |key: &str| match path {
        "" => key.to_string(),
        // The path of an unknown key already ends in it.
        path if path.ends_with(key) => path.to_string(),
        path => format!("{path}.{key}"),
    };
    let (key, sentence) = if message.starts_with("unknown field `") {
        (join(quoted[0]), format!("found an unknown key {:?}; expected one of {}{}", quoted[0], list(), nearest(quoted[0])))
    } else if message.starts_with("unknown variant `") {
        (path.to_string(), format!("found {:?}; expected one of {}{}", quoted[0], list(), nearest(quoted[0])))
    } else if message.starts_with("missing field `") {
        (join(quoted[0]), "found nothing; expected this key".to_string())
    } else if let Some(rest) = message.strip_prefix("invalid type: ") {
        (path.to_string(), format!("found {}", rest.replacen(", expected", "; expected", 1)))
    } else if message.starts_with("data did not match any variant of untagged enum") {
        (path.to_string(), "found a value of the wrong form; expected a name or a table with the documented keys and units".to_string())
    } else {
        (path.to_string(), message.to_string())
    };
    PlanError::new_err((key, sentence))
}

/// A sentence of a room: `key: what was found; what was expected`.
pub(crate) fn refuse(sentence: &str) -> PyErr {
    let (key, rest) = sentence.split_once(": ").unwrap_or(("", sentence));
    PlanError::new_err((key.to_string(), rest.to_string()))
}

/// An operating system's error about a file, as Python's open() would raise it.
pub(crate) fn os_error(path: &str, error: &std::io::Error) -> PyErr {
    let text = error.to_string();
    let plain = text.split(" (os error").next().unwrap_or(&text).to_string();
    PyOSError::new_err((error.raw_os_error().unwrap_or(0), plain, path.to_string()))
}
