//! The parts that pages are composed of: structure as front matter, typed and checked.
//!
//! A theme has one component for each kind. Adding a kind here is adding a component there.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::values::{House, Icon, Link, Markdown, RoutePath};

/// Writes the enum with the keys that every kind has.
macro_rules! sections {
    ($($(#[$documentation:meta])* $kind:ident { $($(#[$field_documentation:meta])* $field:ident: $type:ty,)* })*) => {
        /// A part of a page; `kind` says which.
        #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
        pub enum Section {
            $($(#[$documentation])* $kind {
                /// The fragment that links can name.
                #[serde(default)]
                id: Option<String>,
                /// The part of the page that it belongs to, together with the sections beside it that name the same: a fragment that links can name, too.
                #[serde(default)]
                group: Option<String>,
                /// The section's number on the street, for example `No. 1`.
                #[serde(default)]
                address: Option<String>,
                /// The heading.
                #[serde(default)]
                title: Option<String>,
                /// The words below the heading.
                #[serde(default)]
                text: Option<Markdown>,
                $($(#[$field_documentation])* #[serde(default)] $field: $type,)*
            },)*
        }

        impl Section {
            /// The kinds that there are.
            pub const KINDS: &[&str] = &[$(stringify!($kind)),*];

            /// The fragment, where the section has one.
            #[must_use]
            pub fn id(&self) -> Option<&str> {
                match self { $(Self::$kind { id, .. } => id.as_deref(),)* }
            }
        }
    };
}

sections! {
    /// The opening of a page.
    Hero {
        /// A few words above the heading.
        badge: Option<String>,
        /// What to do now.
        actions: Vec<Action>,
        /// What is drawn.
        drawing: Drawing,
        /// The link that leads on down the page.
        scroll_hint: Option<ScrollHint>,
    }
    /// Things in rows: services, values, features.
    Rows {
        /// The rows.
        items: Vec<Row>,
        /// Whether they are counted.
        numbered: bool,
        /// Whether they fade in as a visitor scrolls there.
        reveal: bool,
    }
    /// A few large sentences.
    Statement {
        /// Whether they fade in as a visitor scrolls there.
        reveal: bool,
    }
    /// Numbers that speak.
    Statistics {
        /// The numbers.
        items: Vec<Statistic>,
        /// Whether they fade in as a visitor scrolls there.
        reveal: bool,
    }
    /// Who is who.
    People {
        /// The people.
        items: Vec<Person>,
        /// Whether they fade in as a visitor scrolls there.
        reveal: bool,
    }
    /// The row of houses as the way in.
    Street {
        /// The houses.
        items: Vec<StreetHouse>,
    }
    /// Short points.
    Checklist {
        /// The points.
        items: Vec<String>,
    }
    /// What people say.
    Quotes {
        /// The quotes.
        items: Vec<Quote>,
    }
    /// What it costs.
    Plans {
        /// The plans.
        items: Vec<Plan>,
    }
    /// Questions with their answers.
    Questions {
        /// The questions.
        items: Vec<Question>,
    }
    /// The call at the end of a page.
    Call {
        /// What to do now.
        actions: Vec<Action>,
    }
    /// How to reach the company, from its profile.
    Contact {}
    /// A form.
    Form {
        /// Its name, unique on the page.
        name: Option<String>,
        /// What compressing the button does.
        send: Send,
        /// The subject of the mail.
        subject: Option<String>,
        /// The words on the button.
        submit: Option<String>,
        /// The fields.
        fields: Vec<Field>,
        /// What is said when nothing is sent.
        notice: Option<Notice>,
    }
    /// The entries of a collection.
    Entries {
        /// The collection's path.
        collection: Option<RoutePath>,
        /// How many, by default all.
        limit: Option<usize>,
    }
    /// Plain text.
    Prose {}
}

/// Something to press. Without a link it is a button without a target.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Action {
    /// The words.
    pub label: String,
    /// Where it leads.
    #[serde(default)]
    pub link: Option<Link>,
    /// How much it calls.
    #[serde(default)]
    pub style: ActionStyle,
    /// Whether it opens beside the page.
    #[serde(default)]
    pub new_tab: bool,
    /// Small words beside it.
    #[serde(default)]
    pub note: Option<String>,
}

/// How much an action calls.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ActionStyle {
    /// The one thing to do.
    Primary,
    /// Another good thing to do.
    #[default]
    Secondary,
    /// A plain link.
    Quiet,
}

/// What a hero shows beside its words.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Drawing {
    /// Words only.
    #[default]
    None,
    /// The tenant's house.
    House,
    /// All houses of the street.
    Row,
}

/// The link at the foot of a hero.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScrollHint {
    /// The words.
    pub label: String,
    /// Where it leads, `#about`.
    pub link: Link,
}

/// A row.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The heading.
    pub title: String,
    /// The words.
    #[serde(default)]
    pub text: Option<Markdown>,
    /// A drawing of the theme's set.
    #[serde(default)]
    pub icon: Option<Icon>,
    /// Where the row leads.
    #[serde(default)]
    pub link: Option<Link>,
    /// The words of that link.
    #[serde(default)]
    pub link_label: Option<String>,
}

/// A number and what it counts.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Statistic {
    /// The number with its unit.
    pub value: String,
    /// What it counts.
    pub label: String,
}

/// Somebody.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Person {
    /// The name.
    pub name: String,
    /// The title.
    pub role: String,
    /// A few lines.
    pub bio: Markdown,
}

/// A house of the street, as a way in.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StreetHouse {
    /// The name at the door.
    pub title: String,
    /// What is inside.
    #[serde(default)]
    pub text: Option<Markdown>,
    /// Where the door leads.
    pub link: Link,
    /// The drawing.
    pub house: House,
    /// What kind of house.
    #[serde(default)]
    pub label: Option<String>,
    /// What is to be known before going in.
    #[serde(default)]
    pub status: Option<String>,
}

/// What somebody said.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Quote {
    /// The words.
    pub quote: String,
    /// Who said them.
    pub name: String,
    /// What that person does.
    #[serde(default)]
    pub role: Option<String>,
}

/// An offer with its price.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The name.
    pub name: String,
    /// The price in words.
    #[serde(default)]
    pub price: Option<String>,
    /// For how long that price.
    #[serde(default)]
    pub period: Option<String>,
    /// The words below.
    #[serde(default)]
    pub text: Option<Markdown>,
    /// What is in it.
    #[serde(default)]
    pub features: Vec<String>,
    /// What to do now.
    #[serde(default)]
    pub action: Option<Action>,
    /// Whether it is the one to look at.
    #[serde(default)]
    pub featured: bool,
}

/// A question and its answer.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The question.
    pub question: String,
    /// The answer.
    pub answer: Markdown,
}

/// What a form's button does.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Send {
    /// Hands the text to the visitor's mail program, addressed to the company.
    #[default]
    Mail,
    /// Sends nothing and says so.
    Nothing,
}

/// A field of a form.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Field {
    /// The name in the message.
    pub name: String,
    /// The words above it.
    pub label: String,
    /// What it takes.
    #[serde(default, rename = "type")]
    pub kind: FieldKind,
    /// Whether it must be filled.
    #[serde(default)]
    pub required: bool,
    /// How many lines a text area shows.
    #[serde(default)]
    pub rows: Option<u32>,
    /// What the browser may fill in (WHATWG HTML, autofill).
    #[serde(default)]
    pub autocomplete: Option<String>,
    /// Words that stand in it while it is empty.
    #[serde(default)]
    pub placeholder: Option<String>,
    /// The choices of a select.
    #[serde(default)]
    pub options: Vec<Choice>,
}

/// What a field takes.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FieldKind {
    /// One line.
    #[default]
    Text,
    /// An e-mail address.
    Email,
    /// A phone number.
    Tel,
    /// One of the options.
    Select,
    /// Several lines.
    Textarea,
}

/// A choice of a select.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// What is sent.
    pub value: String,
    /// What is read.
    pub label: String,
}

/// What is said when a form sends nothing.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Notice {
    /// The heading.
    pub title: String,
    /// The words.
    #[serde(default)]
    pub text: Option<String>,
    /// What to do instead.
    #[serde(default)]
    pub action: Option<super::manifest::NamedLink>,
}
