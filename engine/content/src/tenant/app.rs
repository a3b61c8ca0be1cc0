//! The app that a tenant's site is for: what structured data says of it, and how the app stores' systems know that site and app belong together.
//!
//! | key | what comes of it, on the tenant's own hosts |
//! |---|---|
//! | `apple` | `/.well-known/apple-app-site-association`, and a banner in Safari where `app_id` is there |
//! | `android` | `/.well-known/assetlinks.json` |
//! | `ads` | `/app-ads.txt` |

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::values::formatted_text;

/// An app, as structured data says it (<https://schema.org/SoftwareApplication>).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct App {
    /// The app's name, by default the tenant's.
    #[serde(default)]
    pub name: Option<String>,
    /// `applicationCategory`, for example `FinanceApplication`.
    pub category: String,
    /// Where it runs.
    #[serde(default)]
    pub platforms: Vec<Platform>,
    /// What it costs to get.
    #[serde(default)]
    pub price: f64,
    /// The currency of the price (ISO 4217).
    #[serde(default = "dollars")]
    pub currency: String,
    /// The app on Apple's platforms.
    #[serde(default)]
    pub apple: Option<AppleApp>,
    /// The app on Android.
    #[serde(default)]
    pub android: Option<AndroidApp>,
    /// The lines of `app-ads.txt`: who may sell advertising in the app (IAB Tech Lab).
    #[serde(default)]
    pub ads: Vec<AdsRecord>,
}

fn dollars() -> String {
    "USD".to_owned()
}

/// A platform that an app runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Platform {
    /// iPhone and iPad.
    Ios,
    /// Android.
    Android,
    /// Any browser.
    Web,
}

impl Platform {
    /// As `operatingSystem` wants it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ios => "iOS",
            Self::Android => "Android",
            Self::Web => "Web",
        }
    }
}

/// What ties a site to an app on Apple's platforms (Apple, 'Supporting associated domains').
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AppleApp {
    /// The prefix of the app's identifier: the team's, 10 letters and digits.
    pub team: TeamId,
    /// The bundle identifier: `com.example.app`.
    pub bundle: BundleId,
    /// The app's number in the App Store, in quotes. With it, Safari shows a banner.
    #[serde(default)]
    pub app_id: Option<AppStoreId>,
    /// The paths that open in the app, for example `/invite/*`. By default all that are no page of the site.
    #[serde(default)]
    pub links: Vec<LinkPattern>,
}

/// What ties a site to an app on Android (Google, 'Digital Asset Links').
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AndroidApp {
    /// The application ID: `com.example.app`.
    pub package: PackageName,
    /// The SHA-256 fingerprints of the certificates that the app is signed with.
    pub fingerprints: Vec<Fingerprint>,
}

formatted_text!(
    /// The identifier of a team in Apple's developer program.
    TeamId, "apple-team", "a team ID: 10 capital letters and digits"
);
formatted_text!(
    /// An identifier of an app on Apple's platforms.
    BundleId, "bundle-id", "a bundle ID such as `com.example.app`"
);
formatted_text!(
    /// The number of an app in the App Store.
    AppStoreId, "app-store-id", "the number in the app's App Store address, in quotes"
);
formatted_text!(
    /// Paths of a site, `*` standing for anything.
    LinkPattern, "link-pattern", "a path with `*` for anything, such as `/invite/*`"
);
formatted_text!(
    /// An identifier of an app on Android.
    PackageName, "android-package", "an application ID such as `com.example.app`"
);
formatted_text!(
    /// The SHA-256 fingerprint of a certificate.
    Fingerprint, "sha256-fingerprint", "a SHA-256 fingerprint: 32 pairs of hexadecimal digits with `:` between"
);
formatted_text!(
    /// A line of `app-ads.txt`.
    AdsRecord, "ads-record", "a line of app-ads.txt such as `ads.example, 1234, DIRECT`"
);

/// Says whether a text fits one of the formats above, or why not, with a hint. None for another format.
pub(super) fn check_format(format: &str, text: &str) -> Option<Result<(), (String, &'static str)>> {
    let (fits, what, hint) = match format {
        "apple-team" => (
            is_team(text),
            "team ID",
            "10 capital letters and digits, from the membership page of the developer account: A1B2C3D4E5",
        ),
        "bundle-id" => (
            is_reverse_domain(text, |byte| byte.is_ascii_alphanumeric() || byte == b'-'),
            "bundle ID",
            "letters, digits and `-`, with dots between, at least two parts: com.example.app",
        ),
        "app-store-id" => (
            (6..=12).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit()),
            "App Store ID",
            "only the digits behind `id` in the app's address: \"1234567890\"",
        ),
        "link-pattern" => (
            text.starts_with(['/', '*']) && text.bytes().all(|byte| byte.is_ascii_graphic()),
            "pattern of paths",
            "begin with `/`, and put `*` for anything: /invite/*",
        ),
        "android-package" => (
            is_package(text),
            "application ID",
            "letters, digits and `_`, each part begins with a letter, at least two parts: com.example.app",
        ),
        "sha256-fingerprint" => (
            is_fingerprint(text),
            "SHA-256 fingerprint",
            "32 pairs of hexadecimal digits in capitals with `:` between, as `keytool -list -v` prints them",
        ),
        "ads-record" => (
            is_ads_record(text),
            "line of app-ads.txt",
            "domain, account, `DIRECT` or `RESELLER`, and perhaps a certification ID: ads.example, 1234, DIRECT",
        ),
        _ => return None,
    };
    Some(if fits {
        Ok(())
    } else {
        Err((format!("`{text}` is no {what}"), hint))
    })
}

fn is_team(text: &str) -> bool {
    text.len() == 10
        && text
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
}

fn is_reverse_domain(text: &str, allowed: impl Fn(u8) -> bool) -> bool {
    text.contains('.')
        && text
            .split('.')
            .all(|part| !part.is_empty() && part.bytes().all(&allowed))
}

fn is_package(text: &str) -> bool {
    is_reverse_domain(text, |byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && text
            .split('.')
            .all(|part| part.starts_with(|first: char| first.is_ascii_alphabetic()))
}

fn is_fingerprint(text: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'A'..=b'F').contains(&byte);
    text.split(':').count() == 32
        && text
            .split(':')
            .all(|pair| pair.len() == 2 && pair.bytes().all(is_digit))
}

/// A record (app-ads.txt 1.0, section 3.4.1) or a variable such as `contact=`.
fn is_ads_record(text: &str) -> bool {
    let one_line = !text.contains(char::is_control);
    let fields: Vec<&str> = text.split(',').map(str::trim).collect();
    let record = (3..=4).contains(&fields.len())
        && fields.iter().all(|field| !field.is_empty())
        && fields[0].contains('.')
        && ["DIRECT", "RESELLER"].contains(&fields[2].to_ascii_uppercase().as_str());
    let variable = text.split_once('=').is_some_and(|(name, value)| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphabetic()) && !value.is_empty()
    });
    one_line && (record || variable)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(format: &str, text: &str) -> bool {
        check_format(format, text).expect("a known format").is_ok()
    }

    #[test]
    fn identifiers_are_as_the_stores_give_them() {
        let fingerprint = ["0F"; 32].join(":");
        for (format, good, bad) in [
            (
                "apple-team",
                vec!["A1B2C3D4E5"],
                vec!["a1b2c3d4e5", "A1B2C3D4E", "A1B2C3D4E5F", "A1B2-3D4E5"],
            ),
            (
                "bundle-id",
                vec!["com.example.app", "com.my-studio.App2"],
                vec![
                    "app",
                    "com..app",
                    "com.example.my_app",
                    ".com.app",
                    "com.app ",
                ],
            ),
            (
                "app-store-id",
                vec!["1234567890"],
                vec!["id1234567890", "12", "", "12345678901234"],
            ),
            (
                "link-pattern",
                vec!["/invite/*", "*"],
                vec!["invite", "/a b", ""],
            ),
            (
                "android-package",
                vec!["com.example.app", "com.example.my_app"],
                vec!["app", "com.1app.x", "com.my-studio.app", "com.app."],
            ),
            (
                "sha256-fingerprint",
                vec![fingerprint.as_str()],
                vec!["0F:0F", &fingerprint[1..], "0f:0f"],
            ),
            (
                "ads-record",
                vec![
                    "google.com, pub-123, DIRECT, f08c47fec0942fa0",
                    "ads.example,1,reseller",
                    "contact=ads@studio.example",
                ],
                vec![
                    "google.com",
                    "google.com, 1, MAYBE",
                    "a.example, , DIRECT",
                    "x\ny=1",
                ],
            ),
        ] {
            for text in good {
                assert!(fits(format, text), "{format}: {text}");
            }
            for text in bad {
                assert!(!fits(format, text), "{format}: {text}");
            }
        }
        assert!(check_format("colour", "#000000").is_none());
    }
}
