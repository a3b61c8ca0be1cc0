//! The style that a page carries, and the header fields that allow it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Renderer;
use crate::apart::FILE_MARK;
use crate::asset::{Asset, policy_hash};
use crate::head::{STYLE_MARK, preload};
use crate::island::Hydration;
use crate::policy::{self, BodyKind};
use crate::stylesheet::{PageStyle, Shown, font_of};
use crate::template::{Scope, asset_href};
use content::address::Address;
use release::snapshot::fields::Fields;

/// A page with its style, and the hash of that for the policy. Its links have marks ([`Place`](crate::place::Place)).
#[derive(Default)]
pub(crate) struct Written {
    /// What is sent.
    pub(crate) html: String,
    /// A source expression for `style-src`: `'sha256-...'`.
    pub(crate) style: String,
    /// The drawings that come after the first view.
    pub(crate) drawings: Option<Asset>,
}

/// The header fields of the pages of a site at an address.
pub(crate) struct PageFields {
    indexed: Arc<Fields>,
    hidden: Arc<Fields>,
}

impl PageFields {
    /// Those of a page that search engines may list, or are to leave out.
    pub(crate) fn of(&self, noindex: bool) -> &Arc<Fields> {
        match noindex {
            true => &self.hidden,
            false => &self.indexed,
        }
    }
}

impl Renderer<'_> {
    /// A rendered page with the style that it uses, and after it `own`, which so takes the place of the theme's, and with what of it lies apart.
    pub(super) fn styled(
        &self,
        html: String,
        kinds: &BTreeSet<&str>,
        scope: &Scope,
        own: &str,
    ) -> Written {
        let drawings = scope.apart.file();
        let html = match &drawings {
            Some(file) => html.replace(FILE_MARK, &self.resolver.asset(file)),
            None => html,
        };
        let live = scope.used.iter();
        let live = live.filter(|(_, client)| *client != Hydration::None);
        let islands: BTreeSet<&str> = live.map(|(name, _)| name.as_str()).collect();
        let shown = Shown {
            html: &html,
            apart: drawings.as_ref().map_or(b"", |file| &file.bytes),
            language: self.site.manifest.language.as_str(),
            islands: &islands.into_iter().collect::<Vec<_>>(),
            may_write: &|island, class| scope.islands.may_write(island, class),
            has_kind: &|kind| kinds.contains(kind),
            sites: &self.inputs.deployment.sites,
        };
        let PageStyle { css, whole_fonts } = self.templates().assets.styles.of_page(&shown);
        let style = css + own;
        let fonts = self.preloaded(scope, &whole_fonts);
        let head = format!("<style>{style}</style>\n{}", preload(fonts));
        Written {
            html: self.with_grounds(&html).replacen(STYLE_MARK, &head, 1),
            style: policy_hash(&style),
            drawings,
        }
    }

    /// The addresses of the fonts that a page asks for before its style is read.
    fn preloaded(&self, scope: &Scope, whole: &BTreeMap<String, String>) -> Vec<String> {
        let files = &self.templates().theme.manifest.preload;
        let address = |file: &String| match whole.get(font_of(file)) {
            Some(whole) => Some(whole.clone()),
            None => asset_href(scope, file),
        };
        files.iter().filter_map(address).collect()
    }

    /// The fields of the pages with these styles at an address.
    pub(crate) fn fields(&self, styles: &BTreeSet<String>, address: &Address) -> PageFields {
        let deployment = &self.inputs.deployment;
        // Who is mounted below a prefix of the domain says nothing about the domain.
        let hsts = if address.host == deployment.origin.domain() {
            deployment.hsts
        } else {
            self.site.manifest.hsts
        };
        let fields = |noindex| {
            let kind = BodyKind::Page {
                styles: styles.clone(),
                script: Some(self.loader_hash().to_owned()),
                noindex,
                framed: deployment.shows_kinds,
                caching: deployment.caching,
                hsts,
            };
            policy::fields(&kind, "text/html; charset=utf-8", self.secure())
        };
        PageFields {
            indexed: fields(false),
            hidden: fields(true),
        }
    }
}
