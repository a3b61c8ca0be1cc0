//! Numbers in the query of an address.
//!
//! **Invariant:** a missing number is not an error; a number that is not valid is named in the message.

use std::collections::HashMap;

use axum::extract::Query;
use axum::response::{IntoResponse, Response};
use http::StatusCode;

use super::refusal::refusal;

/// The parameters of a query. Of a name that occurs twice, the last value counts.
pub(super) type Parameters = Query<HashMap<String, String>>;

/// Error of a parameter that is not a number.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}={value}` is not a whole number: write digits only, such as `{name}=7`")]
pub(super) struct QueryNumberError {
    name: &'static str,
    value: String,
}

impl IntoResponse for QueryNumberError {
    fn into_response(self) -> Response {
        refusal(StatusCode::BAD_REQUEST, self.to_string())
    }
}

/// Returns the number of a parameter; `None` if the query does not have the parameter.
///
/// # Errors
/// If the value is not a whole number from 0 to 2^64 - 1.
pub(super) fn number(
    Query(parameters): &Parameters,
    name: &'static str,
) -> Result<Option<u64>, QueryNumberError> {
    let number = |value: &String| {
        value.parse().map_err(|_| QueryNumberError {
            name,
            value: value.clone(),
        })
    };
    parameters.get(name).map(number).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn days(query: &str) -> Result<Option<u64>, String> {
        let uri = format!("/tenants/corner/visits{query}").parse().unwrap();
        let parameters = Parameters::try_from_uri(&uri).unwrap();
        number(&parameters, "days").map_err(|error| error.to_string())
    }

    #[test]
    fn wrong_number_is_named_with_a_valid_example() {
        assert_eq!(days(""), Ok(None));
        assert_eq!(days("?days=30&from=x"), Ok(Some(30)));
        for value in ["", "x", "-1", "1.5", "99999999999999999999"] {
            let message = format!(
                "`days={value}` is not a whole number: write digits only, such as `days=7`"
            );
            assert_eq!(days(&format!("?days={value}")), Err(message));
        }
    }
}
