//! The typed values in manifests and front matter.
//!
//! Each type names its `format` in the JSON Schema. [`check_format`](crate::formats::check_format) defines what the format accepts.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::name::{ascii_host, is_host_name};

macro_rules! formatted_text {
    ($(#[$documentation:meta])* $name:ident, $format:literal, $description:literal) => {
        $(#[$documentation])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Returns the text as written.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl ::schemars::JsonSchema for $name {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut ::schemars::SchemaGenerator) -> ::schemars::Schema {
                ::schemars::json_schema!({"type": "string", "format": $format, "description": $description})
            }
        }
    };
}

pub(crate) use formatted_text;

formatted_text!(
    /// The target of a link: `/terms`, `#features`, `shop:/contact`, `company:email`, `https://...`, `mailto:...` or `tel:...`.
    Link, "link", "a path from this tenant's root, another tenant's page (`shop:/contact`), a fact of the company (`company:email`), or a URL"
);
formatted_text!(
    /// The old path of a redirect: `/old`, or `/old/*` for all paths below it.
    OldPath, "old-path", "a path such as `/old`, or `/old/*` for all paths below it"
);
formatted_text!(
    /// The target of a redirect: a link, which may have `:splat` as the last segment of its path.
    RedirectTarget, "redirect-target", "a link; `:splat` as the last segment of its path is the part that `*` stands for"
);
formatted_text!(
    /// A file in the tenant's `assets` or in the theme's folder.
    Asset, "asset", "a file in the tenant's `assets`, or of the theme"
);
formatted_text!(
    /// A file of the tenant: in its `assets`, or beside a page.
    TenantFile, "file", "a file of this tenant: `assets/press-kit.zip`"
);
formatted_text!(
    /// A colour as `#rrggbb`.
    Colour, "colour", "a colour as `#rrggbb`"
);
/// A host name as used in requests: lower case, no port, ASCII (`bücher.example` is `xn--bcher-kva.example`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct HostName(String);

impl HostName {
    /// Returns the name as used in requests.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for HostName {
    fn from(written: String) -> Self {
        Self(ascii_host(&written).unwrap_or(written))
    }
}

impl From<HostName> for String {
    fn from(name: HostName) -> Self {
        name.0
    }
}

impl JsonSchema for HostName {
    fn schema_name() -> Cow<'static, str> {
        "HostName".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "hostname", "description": "a host name, for example `corner.example`"})
    }
}
formatted_text!(
    /// A path, for example `/apps/corner`.
    RoutePath, "route", "a path such as `/apps/corner`"
);
formatted_text!(
    /// A path prefix on the deployment's domain, for example `/apps/corner`.
    Prefix, "prefix", "a path such as `/apps/corner`"
);
formatted_text!(
    /// An absolute web address.
    WebUrl, "web-url", "an absolute `https://` address"
);
formatted_text!(
    /// An e-mail address.
    Email, "email", "an e-mail address"
);
formatted_text!(
    /// The user name of a credential. HTTP Basic ends it at the first colon (RFC 7617, section 2).
    UserName, "user-name", "a user name without `:`, for example `client`"
);
formatted_text!(
    /// The SHA-256 of a token, in hexadecimal digits.
    Sha256Digest, "sha256", "64 hexadecimal digits"
);

impl Sha256Digest {
    /// Returns the bytes of the digest. A text that is not a digest has none.
    #[must_use]
    pub fn bytes(&self) -> Option<[u8; 32]> {
        let text = self.0.as_bytes();
        let (pairs, rest) = text.as_chunks::<2>();
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let mut bytes = [0; 32];
        if pairs.len() != bytes.len() || !rest.is_empty() {
            return None;
        }
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = u8::try_from(digit(*high)? << 4 | digit(*low)?).ok()?;
        }
        Some(bytes)
    }
}

/// A calendar day, written as `2025-07-21` (RFC 3339, full-date).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Date(jiff::civil::Date);

impl Date {
    /// Creates a date from a calendar day.
    #[must_use]
    pub const fn of(day: jiff::civil::Date) -> Self {
        Self(day)
    }

    /// Returns the calendar day.
    #[must_use]
    pub const fn day(self) -> jiff::civil::Date {
        self.0
    }
}

impl JsonSchema for Date {
    fn schema_name() -> Cow<'static, str> {
        "Date".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "date", "description": "a date such as `2025-07-21`"})
    }
}

/// An instant, written with its offset from UTC: `2026-12-01T09:00:00-06:00` (RFC 3339, date-time).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Moment(jiff::Timestamp);

impl Moment {
    /// Returns the instant.
    #[must_use]
    pub const fn instant(self) -> jiff::Timestamp {
        self.0
    }
}

impl JsonSchema for Moment {
    fn schema_name() -> Cow<'static, str> {
        "Moment".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "date-time", "description": "a date-time such as `2026-12-01T09:00:00-06:00`"})
    }
}

formatted_text!(
    /// A time zone by its IANA name, for example `Europe/Berlin`.
    TimeZone, "time-zone", "a time zone by its IANA name: `Europe/Berlin`"
);

formatted_text!(
    /// A language by its tag (BCP 47), for example `de` or `pt-BR`.
    Language, "language", "a language by its tag: `en`, `de`, `pt-BR`"
);

impl Default for Language {
    fn default() -> Self {
        Self("en".to_owned())
    }
}

impl Default for TimeZone {
    fn default() -> Self {
        Self("UTC".to_owned())
    }
}

impl TimeZone {
    /// Returns the current year in the time zone.
    #[must_use]
    pub fn year(&self, now: jiff::Timestamp) -> i16 {
        let zone = jiff::tz::TimeZone::get(&self.0).unwrap_or(jiff::tz::TimeZone::UTC);
        now.to_zoned(zone).year()
    }
}

pub(crate) fn is_email(text: &str) -> bool {
    text.split_once('@').is_some_and(|(name, domain)| {
        !name.is_empty()
            && !name.contains(char::is_whitespace)
            && is_host_name(&domain.to_ascii_lowercase())
    })
}
