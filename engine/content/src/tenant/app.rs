//! The app that a tenant's site is for: what structured data says of it, and how the app stores' systems know that site and app belong together.
//!
//! | key | what comes of it, on the tenant's own hosts |
//! |---|---|
//! | `apple` | `/.well-known/apple-app-site-association`, and a banner in Safari where `app_id` is there |
//! | `android` | `/.well-known/assetlinks.json` |
//! | `ads` | `/app-ads.txt` |

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::formats::values::formatted_text;

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
