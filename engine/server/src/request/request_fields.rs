//! Reads the header fields of a request that its response depends on, in one pass.
//!
//! A look-up by name hashes the name. A request has so few fields that comparing all their names takes less time than several look-ups.
//!
//! **Invariant:** pure; borrows the values, and allocates nothing.

use http::header::{
    ACCEPT_ENCODING, HOST, HeaderMap, HeaderName, HeaderValue, REFERER, USER_AGENT,
};

use crate::request::host::HostField;
use crate::request::negotiate::AcceptedEncodings;
use crate::request::preconditions::Conditions;

pub(crate) const SEC_PURPOSE: HeaderName = HeaderName::from_static("sec-purpose");

/// The header fields that each response depends on, or that each request is counted by.
#[derive(Debug, Default)]
pub(crate) struct RequestFields<'r> {
    pub(crate) host: HostField<'r>,
    pub(crate) accepted: AcceptedEncodings,
    pub(crate) conditions: Conditions<'r>,
    /// The first `User-Agent`.
    pub(crate) user_agent: Option<&'r HeaderValue>,
    /// The first `Referer`.
    pub(crate) referrer: Option<&'r HeaderValue>,
    /// The first `Sec-Purpose`.
    pub(crate) purpose: Option<&'r HeaderValue>,
}

impl<'r> RequestFields<'r> {
    /// Reads the fields.
    pub(crate) fn read(headers: &'r HeaderMap) -> Self {
        let mut fields = Self::default();
        for (name, value) in headers {
            let first = match *name {
                HOST => {
                    fields.host.add(value);
                    continue;
                }
                ACCEPT_ENCODING => {
                    fields.accepted.read(value);
                    continue;
                }
                USER_AGENT => &mut fields.user_agent,
                REFERER => &mut fields.referrer,
                _ if *name == SEC_PURPOSE => &mut fields.purpose,
                _ => {
                    fields.conditions.read(name, headers);
                    continue;
                }
            };
            first.get_or_insert(value);
        }
        fields
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_of_repeated_fields_counts() {
        let lines = ["user-agent", "referer", "sec-purpose"].map(HeaderName::from_static);
        let mut headers = HeaderMap::new();
        for value in ["a", "b"] {
            for name in &lines {
                headers.append(name, HeaderValue::from_static(value));
            }
        }
        let fields = RequestFields::read(&headers);
        for field in [fields.user_agent, fields.referrer, fields.purpose] {
            assert_eq!(field, Some(&HeaderValue::from_static("a")));
        }
    }
}
