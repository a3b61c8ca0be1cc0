//! The app that a tenant's site is about: facts for structured data, and for the systems of app stores that associate a site with its app.
//!
//! | key | result on the tenant's own hosts |
//! |---|---|
//! | `apple` | `/.well-known/apple-app-site-association`, and a banner in Safari if `app_id` is set |
//! | `android` | `/.well-known/assetlinks.json` |
//! | `ads` | `/app-ads.txt` |

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::formats::values::formatted_text;

/// An app, as described in structured data (<https://schema.org/SoftwareApplication>).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct App {
    /// The name of the app, by default the tenant's name.
    #[serde(default)]
    pub name: Option<String>,
    /// The `applicationCategory`, for example `FinanceApplication`.
    pub category: String,
    /// The platforms on which the app runs.
    #[serde(default)]
    pub platforms: Vec<Platform>,
    /// The purchase price, 0 for a free app.
    #[serde(default)]
    pub price: f64,
    /// The currency of the price (ISO 4217).
    #[serde(default = "dollars")]
    pub currency: String,
    /// Whether users have an account in the app. `false` states that there is none, so no page says how to delete an account.
    #[serde(default)]
    pub account: Option<bool>,
    /// Whether people of any age may use the app, so no page states a minimum age.
    #[serde(default)]
    pub any_age: bool,
    /// Things that `check` expects from the site of an app (`store-readiness`) and that this app does not need, with the reason.
    #[serde(default)]
    pub not_needed: Vec<NotNeeded>,
    /// The app on Apple's platforms.
    #[serde(default)]
    pub apple: Option<AppleApp>,
    /// The app on Android.
    #[serde(default)]
    pub android: Option<AndroidApp>,
    /// The lines of `app-ads.txt`: the authorised sellers of advertising in the app (IAB Tech Lab).
    #[serde(default)]
    pub ads: Vec<AdsRecord>,
}

fn dollars() -> String {
    "USD".to_owned()
}

/// A thing that an app's site does not need.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NotNeeded {
    /// The thing.
    pub need: StoreNeed,
    /// The reason why the app does not need it.
    pub reason: String,
}

/// A thing that `check` expects from the site of an app.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StoreNeed {
    /// A privacy policy with its date.
    Privacy,
    /// Terms of service.
    Terms,
    /// A support page with an email link.
    Support,
    /// Texts that say where users delete their account, in the app and without it.
    AccountDeletion,
    /// A minimum age in the terms or the privacy policy.
    MinimumAge,
    /// An email link on the page about accessibility, if there is one.
    Accessibility,
    /// An email link in the imprint, if there is one.
    Imprint,
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
    /// Returns the name of the platform as used in `operatingSystem`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ios => "iOS",
            Self::Android => "Android",
            Self::Web => "Web",
        }
    }
}

/// The association of a site with an app on Apple's platforms (Apple, 'Supporting associated domains').
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AppleApp {
    /// The team ID, which is the prefix of the app's identifier: 10 letters and digits.
    pub team: TeamId,
    /// The bundle ID, for example `com.example.app`.
    pub bundle: BundleId,
    /// The number of the app in the App Store, in quotes. If set, Safari shows a banner.
    #[serde(default)]
    pub app_id: Option<AppStoreId>,
    /// The paths that open in the app, for example `/invite/*`. By default, all paths that are not pages of the site.
    #[serde(default)]
    pub links: Vec<LinkPattern>,
}

/// The association of a site with an app on Android (Google, 'Digital Asset Links').
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AndroidApp {
    /// The application ID, for example `com.example.app`.
    pub package: PackageName,
    /// The SHA-256 fingerprints of the certificates that sign the app.
    pub fingerprints: Vec<Fingerprint>,
}

formatted_text!(
    /// The id of a team in Apple's developer program.
    TeamId, "apple-team", "a team ID: 10 capital letters and digits"
);
formatted_text!(
    /// The id of an app on Apple's platforms.
    BundleId, "bundle-id", "a bundle ID such as `com.example.app`"
);
formatted_text!(
    /// The number of an app in the App Store.
    AppStoreId, "app-store-id", "the number in the app's App Store address, in quotes"
);
formatted_text!(
    /// A pattern of paths, in which `*` stands for any text.
    LinkPattern, "link-pattern", "a path with `*` for any text, such as `/invite/*`"
);
formatted_text!(
    /// The id of an app on Android.
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
