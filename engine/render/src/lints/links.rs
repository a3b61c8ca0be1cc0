//! Checks that everything that an author names exists: pages, fragments, images, SVGs, layouts.
//!
//! References within the tenant are decided here, with their place in the source.
//! Links to other tenants are returned, because only the supervisor knows all tenants.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};

use super::logo;
use crate::compile::site_card::shared_svg;
use crate::markdown;
use crate::markdown::element_ids::PageIds;
use crate::media::media_type::{MediaKind, is_svg, supported_types};
use crate::pages::hierarchy::collection_of;
use crate::pages::links::resolver::{LinkTarget, parse_link};
use crate::pages::values::resolve::size_of;
use crate::resources::asset::Asset;
use crate::theme::Templates;
use content::formats::link::{beside, rooted};
use content::formats::old_path::SPLAT;
use content::name::nfc;
use content::name::reserved::ASSETS;
use content::report::{
    Code, Diagnostic, LineIndex, Report, Severity, TextPosition, hint_for, nearest,
};
use content::schema::FormattedText;
use content::tenant::check_with_theme::ThemedContent;
use content::tenant::manifest::Company;
use content::tenant::{HiddenReason, MANIFEST, Page, Site, assets};
use content::yaml::position_in_block;

/// A link to another tenant's page, with the diagnostic for a missing page.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CrossTenantLink {
    /// The id of the other tenant.
    pub tenant: String,
    /// The path of the page within that tenant.
    pub path: String,
    /// The warning, complete except for its message.
    pub diagnostic: Diagnostic,
}

/// The paths of a site, each with the fragments of its page. `None` if the page failed to render.
pub(crate) type Fragments = BTreeMap<String, Option<BTreeSet<String>>>;

/// Limit on the links to other tenants that are located in the source.
const MAX_LOCATED_LINKS: usize = 200;

/// Checks the references of a site and collects the findings.
pub(super) struct Checker<'a> {
    /// The site.
    pub site: &'a Site,
    /// Its content, checked against the schemas of the theme.
    pub content: &'a ThemedContent,
    /// Its files by key.
    pub assets: &'a BTreeMap<String, Asset>,
    /// The company profile.
    pub company: Option<&'a Company>,
    /// Whether pages of other sites show its SVGs.
    pub is_shown: bool,
    /// Its theme.
    pub templates: &'a Templates,
    /// The paths and fragments of the rendered site.
    pub fragments: &'a Fragments,
    /// The ids that occur more than once, by page path.
    pub repeated: HashMap<&'a str, &'a BTreeSet<String>>,
    /// The paths that the manifest redirects.
    pub moved: &'a HashSet<String>,
    /// Links whose missing target the manifest declares, each with the reason.
    pub known_missing: HashMap<&'a str, &'a str>,
    /// The findings.
    pub report: Report,
    /// The links to other tenants.
    pub cross_tenant_links: Vec<CrossTenantLink>,
    /// The keys of the images whose problem is already reported.
    pub reported: BTreeSet<String>,
}

/// The file and the place of a reference.
#[derive(Clone, Copy)]
struct ReferenceSpot<'a> {
    file: &'a str,
    at: ReferenceLocation<'a>,
    /// The path of the page that a bare fragment belongs to.
    page: Option<&'a str>,
}

/// The place of a reference in its file, computed only for a diagnostic.
#[derive(Clone, Copy)]
enum ReferenceLocation<'a> {
    At(TextPosition),
    /// A byte range in the body of a page.
    InPage {
        lines: &'a LineIndex<'a>,
        page: &'a Page,
        range: &'a Range<usize>,
    },
    /// A line, from 1, of the YAML text that begins at a place.
    InBlock(TextPosition, usize),
    /// Words in line `line` of the file, whose text is `written`.
    Words {
        words: &'a str,
        written: &'a str,
        line: usize,
    },
}

impl ReferenceSpot<'_> {
    fn position(&self, site: &Site) -> TextPosition {
        match self.at {
            ReferenceLocation::At(place) => place,
            ReferenceLocation::InPage { lines, page, range } => position_in(lines, page, range),
            ReferenceLocation::InBlock(place, line) => {
                let text = site.written.texts.get(self.file);
                text.map_or(place, |text| {
                    position_in_block(&LineIndex::of(text), place, line)
                })
            }
            ReferenceLocation::Words {
                words,
                written,
                line,
            } => position_of(words, written, line),
        }
    }
}

impl<'a> Checker<'a> {
    /// Checks the manifest and all pages.
    pub(super) fn check(&mut self) {
        let site = self.site;
        self.formatted(&site.formatted, MANIFEST, None, false);
        let content = self.content;
        let shaped = |file: &str| content.formatted.get(file).map_or(&[][..], Vec::as_slice);
        self.formatted(shaped(MANIFEST), MANIFEST, None, true);
        for page in site.pages.values() {
            self.layouts(page);
            self.feed_date(page);
            self.formatted(&page.formatted, &page.file, Some(&page.path), false);
            self.formatted(shaped(&page.file), &page.file, Some(&page.path), true);
            self.ids(page);
            let lines = LineIndex::of(&page.body);
            let findings = markdown::foreign_markup::findings(&page.body);
            for finding in &findings {
                let at = ReferenceLocation::InPage {
                    lines: &lines,
                    page,
                    range: &finding.range,
                };
                self.finding(
                    finding,
                    ReferenceSpot {
                        file: &page.file,
                        at,
                        page: None,
                    },
                );
            }
            let mut around = findings.iter().peekable();
            let mut told = 0;
            for (html, start) in markdown::html(&page.body) {
                while let Some(finding) = around.next_if(|finding| finding.range.start <= start) {
                    told = told.max(finding.range.end);
                }
                if start < told {
                    continue;
                }
                let line = lines.number(start);
                let at = ReferenceLocation::Words {
                    words: &html,
                    written: lines.get(line),
                    line: page.body_line + line - 1,
                };
                self.html(
                    &html,
                    ReferenceSpot {
                        file: &page.file,
                        at,
                        page: None,
                    },
                );
            }
            for reference in markdown::references(&page.body) {
                let line = reference.line;
                let at = ReferenceLocation::Words {
                    words: &reference.destination,
                    written: lines.get(line),
                    line: page.body_line + line - 1,
                };
                let spot = ReferenceSpot {
                    file: &page.file,
                    at,
                    page: Some(&page.path),
                };
                self.in_markdown(&reference, spot);
            }
        }
        self.check_unnamed_images();
    }

    /// Checks texts that have a format. `shaped`: whether they come from the theme's schemas, whose routes are pages of the tenant.
    fn formatted(&mut self, texts: &[FormattedText], file: &str, page: Option<&str>, shaped: bool) {
        for text in texts {
            let spot = ReferenceSpot {
                file,
                at: ReferenceLocation::At(text.position),
                page,
            };
            match text.format.as_str() {
                "link" => self.link(&text.text, spot),
                "redirect-target" => self.redirect_target(&text.text, spot),
                "asset" => self.asset(&text.text, spot),
                "image" => {
                    self.asset(&text.text, spot);
                    self.image(&text.text, spot);
                }
                "logo" => {
                    self.asset(&text.text, spot);
                    self.image(&text.text, spot);
                    self.logo(&text.text, spot);
                }
                "file" => self.file(&text.text, spot),
                "drawing" => self.check_svg(&text.text, spot),
                "icon" => self.check_svg(&format!("icons/{}.svg", text.text), spot),
                "route" | "collection" if shaped => {
                    self.own_link(&text.text, &text.text, None, spot);
                }
                "markdown" | "inline-markdown" => {
                    let at = |line| ReferenceSpot {
                        at: ReferenceLocation::InBlock(text.position, line),
                        ..spot
                    };
                    let lines = LineIndex::of(&text.text);
                    for finding in markdown::foreign_markup::findings(&text.text) {
                        self.finding(&finding, at(lines.number(finding.range.start)));
                    }
                    for (html, start) in markdown::html(&text.text) {
                        self.html(&html, at(lines.number(start)));
                    }
                    for reference in markdown::references(&text.text) {
                        self.in_markdown(&reference, at(reference.line));
                    }
                }
                _ => {}
            }
        }
    }

    /// Checks the target of a redirect. A target with a place for the rest of the requested path needs at least one page below it.
    fn redirect_target(&mut self, target: &str, spot: ReferenceSpot<'_>) {
        let meant = rooted(target, spot.file);
        let path = meant.split(['?', '#']).next().unwrap_or_default();
        let Some(folder) = path.strip_suffix(SPLAT) else {
            // The other redirect is the cause, and is reported.
            return match self.moved.contains(path) {
                true => {}
                false => self.link(target, spot),
            };
        };
        let is_below = |path: &String| {
            path.strip_prefix(folder)
                .is_some_and(|rest| rest.starts_with('/'))
        };
        if folder.is_empty() || !folder.starts_with('/') || self.fragments.keys().any(is_below) {
            return;
        }
        self.report(Severity::Error, Code::BrokenLink, spot, || {
            let message = format!("the tenant has no page below `{folder}`");
            let hint = "redirect to a folder with pages, or to one page without `:splat`";
            (message, Some(hint.to_owned()))
        });
    }

    fn finding(
        &mut self,
        finding: &markdown::foreign_markup::ForeignMarkup,
        spot: ReferenceSpot<'_>,
    ) {
        self.report(Severity::Warning, finding.code, spot, || {
            (finding.message.clone(), Some(finding.hint.clone()))
        });
    }

    /// Reports ids that an author chose and that occur more than once on the page.
    fn ids(&mut self, page: &Page) {
        let hint = "choose another id; links go to the first element with this id";
        let repeated = self.repeated.get(page.path.as_str()).copied();
        let content = self.content;
        for fragment in content.fragments(&page.file) {
            if repeated.is_some_and(|ids| ids.contains(&*nfc(&fragment.text))) {
                let spot = ReferenceSpot {
                    file: &page.file,
                    at: ReferenceLocation::At(fragment.position),
                    page: None,
                };
                self.report(Severity::Warning, Code::DuplicateId, spot, || {
                    let message = format!("the page has the id `{}` more than once", fragment.text);
                    (message, Some(hint.to_owned()))
                });
            }
        }
        let mut ids = PageIds::new(Arc::clone(&self.templates.ids));
        for fragment in content.fragments(&page.file) {
            ids.reserve(&fragment.text);
        }
        let lines = LineIndex::of(&page.body);
        for (written, range) in markdown::author_ids(&page.body) {
            let assigned = ids.assign(&written);
            if assigned == *nfc(&written) {
                continue;
            }
            let spot = ReferenceSpot {
                file: &page.file,
                at: ReferenceLocation::At(position_in(&lines, page, &range)),
                page: None,
            };
            self.report(Severity::Warning, Code::DuplicateId, spot, || {
                let message = format!(
                    "the page already has the id `{written}`; this heading gets `{assigned}`"
                );
                (message, Some(hint.to_owned()))
            });
        }
    }

    fn html(&mut self, html: &str, spot: ReferenceSpot<'_>) {
        self.report(Severity::Error, Code::RawHtml, spot, || {
            let message = format!("`{html}` is HTML, but Markdown texts cannot contain HTML");
            let hint = "use Markdown or a section; write `&lt;` for the character `<`";
            (message, Some(hint.to_owned()))
        });
    }

    fn in_markdown(&mut self, reference: &markdown::Reference, spot: ReferenceSpot<'_>) {
        if !reference.is_image {
            if let Err(problem) = content::formats::check_format("link", &reference.destination) {
                return self.report(Severity::Error, Code::BadValue, spot, || problem);
            }
            return self.link(&reference.destination, spot);
        }
        self.asset(&reference.destination, spot);
        self.shown(&reference.destination, spot);
    }

    /// Reports a file that Markdown shows as an image but browsers do not support.
    fn shown(&mut self, path: &str, spot: ReferenceSpot<'_>) {
        if let Some((key, _)) = self.named(path, spot)
            && MediaKind::of(key) == MediaKind::Unsupported
        {
            self.report(Severity::Error, Code::PictureType, spot, || {
                let message = format!("browsers do not show `{path}`");
                let types = supported_types(key);
                let hint = format!("convert the file to {types}, or link to it: `[...]({path})`");
                (message, Some(hint))
            });
        }
    }

    /// Reports a file that a section shows as an image but is not an image.
    fn image(&mut self, path: &str, spot: ReferenceSpot<'_>) {
        if let Some((key, _)) = self.named(path, spot)
            && MediaKind::of(key) != MediaKind::Image
        {
            self.report(Severity::Error, Code::PictureType, spot, || {
                let message = format!("`{path}` is not a valid image");
                let hint = "name a JPEG, PNG, WebP, AVIF, GIF or SVG file";
                (message, Some(hint.to_owned()))
            });
        }
    }

    /// Reports a logo that visitors cannot read.
    fn logo(&mut self, path: &str, spot: ReferenceSpot<'_>) {
        let logo = self.named(path, spot);
        let logo = logo.filter(|(key, _)| MediaKind::of(key) == MediaKind::Image);
        let problem = logo.and_then(|(key, asset)| logo::problem(size_of(asset), is_svg(key)));
        if let Some((problem, hint)) = problem {
            self.report(Severity::Warning, Code::UnsuitedLogo, spot, || {
                (format!("the logo `{path}` {problem}"), Some(hint))
            });
        }
    }

    fn link(&mut self, link: &str, spot: ReferenceSpot<'_>) {
        let meant = rooted(link, spot.file);
        if let Some((key, asset, _)) = assets::linked(self.assets, &meant) {
            asset.mark_used();
            return self.linked_file(link, key, spot);
        }
        match parse_link(&meant) {
            // Invalid links are reported together with other invalid values.
            Err(_) | Ok(LinkTarget::External) => {}
            Ok(LinkTarget::Company(fact)) => self.company_link(link, &fact, spot),
            Ok(LinkTarget::Relative) => {
                self.report(Severity::Error, Code::BrokenLink, spot, || {
                    let message = format!("`{link}` links to a file outside the tenant's folder");
                    let hint = "name a file in the folder, or begin with `https://`";
                    (message, Some(hint.to_owned()))
                })
            }
            Ok(LinkTarget::SameTenant(path, _)) if path.starts_with(ASSETS) => {
                let words = "does not exist in the tenant's `assets`";
                self.missing(&path[ASSETS.len()..], &path[ASSETS.len()..], words, spot);
            }
            Ok(LinkTarget::SameTenant(path, fragment)) => {
                self.own_link(link, &path, fragment.as_deref(), spot)
            }
            Ok(LinkTarget::OtherTenant(tenant, path, fragment))
                if tenant == self.site.id.as_str() =>
            {
                self.own_link(link, &path, fragment.as_deref(), spot);
            }
            Ok(LinkTarget::OtherTenant(tenant, path, _)) => {
                let name = self.site.name_of(spot.file);
                let diagnostic = Diagnostic::error(Code::BrokenNeighbourLink, name, "");
                // Locating thousands of links would take too long.
                let diagnostic = match self.cross_tenant_links.len() < MAX_LOCATED_LINKS {
                    true => self
                        .site
                        .locate(diagnostic, spot.file, spot.position(self.site)),
                    false => diagnostic,
                };
                self.cross_tenant_links.push(CrossTenantLink {
                    tenant,
                    path,
                    diagnostic: Diagnostic {
                        severity: Severity::Warning,
                        ..diagnostic
                    },
                });
            }
        }
    }

    /// Reports a link to a fact that the company profile does not have. A missing profile is reported once, by the supervisor.
    fn company_link(&mut self, link: &str, fact: &str, spot: ReferenceSpot<'_>) {
        let is_missing = self.company.is_some_and(|company| match fact {
            "scheduling" => company.scheduling.is_none(),
            "network" => company.network.is_none(),
            _ => false,
        });
        if is_missing {
            self.report(Severity::Warning, Code::MissingCompany, spot, || {
                let message = format!("`{link}`: the company profile has no `{fact}`");
                let hint = format!(
                    "add `{fact}` to `company` in the manifest of the root tenant, or remove the link"
                );
                (message, Some(hint))
            });
        }
    }

    fn own_link(
        &mut self,
        link: &str,
        path: &str,
        fragment: Option<&str>,
        spot: ReferenceSpot<'_>,
    ) {
        let page = if path.is_empty() {
            spot.page.unwrap_or("/")
        } else {
            self.translated(path, spot.file)
        };
        let Some(ids) = self.fragments.get(page) else {
            return self.missing_page(link, page, spot);
        };
        if let (Some(ids), Some(fragment)) = (ids, fragment)
            && !fragment.is_empty()
            // `#top` is the top of the page in every browser (HTML, section 7.4.6.4).
            && !fragment.eq_ignore_ascii_case("top")
            && !ids.contains(fragment)
            && !(percent_decode_str(fragment).decode_utf8())
                .is_ok_and(|decoded| ids.contains(&*nfc(&decoded)))
        {
            self.report(Severity::Error, Code::BrokenFragment, spot, || {
                let message = format!("`{link}`: the page has no id `{fragment}`");
                // The theme's own ids begin with `_`.
                let authors = ids.iter().filter(|id| !id.starts_with('_'));
                let hint = hint_for(fragment, authors.map(String::as_str));
                (message, Some(hint))
            });
        }
    }

    /// Returns the path of the translation that a link in `file` goes to, or the path itself.
    fn translated<'p>(&self, path: &'p str, file: &str) -> &'p str
    where
        'a: 'p,
    {
        let manifest = &self.site.manifest;
        let language = match manifest.path_of_file(file) {
            Some(page) => manifest.language_of(&page),
            None => 0,
        };
        if language == 0 {
            return path;
        }
        let site: &'a Site = self.site;
        let translation = site.translation(path, language);
        translation.map_or(path, |page| page.path.as_str())
    }

    /// Reports a link whose page is not served.
    fn missing_page(&mut self, link: &str, page: &str, spot: ReferenceSpot<'_>) {
        let (site, fragments, assets) = (self.site, self.fragments, self.assets);
        if let Some(reason) = self.known_missing.get(link).copied() {
            if spot.file != MANIFEST {
                let message = || format!("`{link}` is known to be missing: {reason}");
                self.report(Severity::Note, Code::KnownMissing, spot, || {
                    (message(), None)
                });
            }
            return;
        }
        if let Some(hidden) = site.hidden.get(page) {
            let why = match hidden {
                HiddenReason::Draft => "a draft",
                HiddenReason::Scheduled(_) | HiddenReason::Expired(_) => {
                    "a page that is not published at this time"
                }
            };
            let hint =
                "publish the page, or remove the link; until then, visitors find no page there";
            return self.report(Severity::Warning, Code::HiddenLink, spot, || {
                (format!("`{link}` links to {why}"), Some(hint.to_owned()))
            });
        }
        self.report(Severity::Error, Code::BrokenLink, spot, || {
            if let Some(file) = page.strip_prefix('/').filter(|path| is_beside(path)) {
                let hint = match nearest_path(page, fragments).or_else(|| {
                    let keys = assets.keys().map(String::as_str);
                    nearest(file.rsplit('/').next().unwrap_or(file), keys)
                }) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("add `{file}`, or correct the link"),
                };
                return (format!("`{link}`: the file `{file}` does not exist"), Some(hint));
            }
            let hint = match nearest_path(page, fragments) {
                Some(near) => format!("did you mean `{near}`?"),
                None => {
                    let name = match page.trim_end_matches('/') {
                        "" => "/index",
                        name => name,
                    };
                    format!(
                        "add `pages{name}.md`, or correct the link; links to other sites begin with `https://`"
                    )
                }
            };
            (format!("the page `{link}` does not exist"), Some(hint))
        });
    }

    /// Reports a company link to one of the tenant's files. Pages of other sites show the link, too, but do not have the file.
    fn linked_file(&mut self, link: &str, key: &str, spot: ReferenceSpot<'_>) {
        let languages = 0..self.site.manifest.languages().len();
        let companies =
            languages.filter_map(|language| self.site.manifest_in(language).company.as_deref());
        let mut links = companies.flat_map(Company::links);
        let is_shared = links.any(|shared| shared.link.as_str() == link);
        if spot.file == MANIFEST && is_shared {
            self.report(Severity::Error, Code::BrokenLink, spot, || {
                let message = format!(
                    "`{link}` is a file of this tenant, but every site of the company shows the link"
                );
                let hint = format!("link to a page that offers `{key}`");
                (message, Some(hint))
            });
        }
    }

    fn asset(&mut self, path: &str, spot: ReferenceSpot<'_>) {
        let named = self.named(path, spot);
        if let Some((key, asset)) = named {
            self.check_image(key, asset, spot);
        }
        if named.is_none() && !self.templates.assets.files.contains_key(path) {
            self.missing(path, path, "does not exist in the tenant's `assets`", spot);
        }
    }

    fn file(&mut self, path: &str, spot: ReferenceSpot<'_>) {
        if self.named(path, spot).is_none() {
            self.missing(path, path, "does not exist in the tenant's `assets`", spot);
        }
    }

    /// Returns the tenant's file that a text names, and marks the file as used.
    fn named(&self, path: &str, spot: ReferenceSpot<'_>) -> Option<(&'a str, &'a Asset)> {
        let found = assets::named(self.assets, path, spot.file);
        found.map(|(key, asset)| (key, asset.mark_used()))
    }

    /// Reports the problem of an image where the image is named first.
    fn check_image(&mut self, key: &str, asset: &Asset, spot: ReferenceSpot<'_>) {
        let problem = asset.raster.as_ref().and_then(|raster| raster.problem);
        if let Some(problem) = problem.filter(|_| self.reported.insert(key.to_owned())) {
            let (severity, code) = problem.kind();
            let file = assets::file_of(key);
            self.report(severity, code, spot, || {
                (format!("`{file}` {problem}"), Some(problem.hint()))
            });
        }
    }

    /// Reports the problems of images that nothing names.
    fn check_unnamed_images(&mut self) {
        for (key, asset) in self.assets {
            let problem = asset.raster.as_ref().and_then(|raster| raster.problem);
            let Some(problem) = problem.filter(|_| !self.reported.contains(key)) else {
                continue;
            };
            let (severity, code) = problem.kind();
            let file = self.site.name_of(&assets::file_of(key));
            self.report.add(severity, code, &file, || Diagnostic {
                severity,
                ..Diagnostic::error(code, &file, format!("the file {problem}")).hint(problem.hint())
            });
        }
    }

    fn check_svg(&mut self, path: &str, spot: ReferenceSpot<'_>) {
        let named = self.named(path, spot);
        if self.is_shown
            && spot.file == MANIFEST
            && let Some((_, asset)) = named
            && let Err(why) = shared_svg(&asset.bytes, "")
        {
            self.report(Severity::Warning, Code::TooLarge, spot, || {
                let message = format!("other sites do not show `{path}`: {why}");
                let hint = "use a simpler SVG; until then, other sites show the theme's";
                (message, Some(hint.to_owned()))
            });
        }
        if named.is_none() && !self.templates.assets.files.contains_key(path) {
            let words = "does not exist in the tenant's `assets` or in the theme";
            self.missing(path, path, words, spot);
        }
    }

    fn missing(&mut self, shown: &str, themed: &str, words: &str, spot: ReferenceSpot<'_>) {
        let (assets, themed_assets) = (self.assets, &self.templates.assets.files);
        self.report(Severity::Error, Code::MissingAsset, spot, || {
            if is_elsewhere(shown) {
                let message = format!(
                    "`{shown}` is on another site, but pages show files of their own tenant only"
                );
                let hint = "copy the file into `assets/`, and write its name";
                return (message, Some(hint.to_owned()));
            }
            let hint = match nearest_file(themed, assets.keys().chain(themed_assets.keys())) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("add `{}`", file_meant(shown, spot.file)),
            };
            (format!("`{shown}` {words}"), Some(hint))
        });
    }

    fn layouts(&mut self, page: &Page) {
        let layouts: Vec<&str> = self.templates.layouts().collect();
        let own = page.front.layout.as_deref();
        let entries = page
            .front
            .collection
            .as_ref()
            .and_then(|collection| collection.layout.as_deref());
        for layout in own.into_iter().chain(entries) {
            if !layouts.contains(&layout) {
                self.report.push(
                    Diagnostic::error(
                        Code::UnknownLayout,
                        self.site.name_of(&page.file),
                        format!("the theme has no layout `{layout}`"),
                    )
                    .hint(hint_for(layout, layouts.iter().copied())),
                );
            }
        }
    }

    /// Reports an entry without a date in a collection with a feed, because the feed leaves such entries out.
    fn feed_date(&mut self, page: &Page) {
        let collection = collection_of(self.site, page).map(|above| &above.front.collection);
        let in_feed = matches!(collection, Some(Some(collection)) if collection.feed);
        if in_feed && page.front.date.is_none() && !page.front.noindex {
            let diagnostic = Diagnostic::warning(
                Code::MissingDate,
                self.site.name_of(&page.file),
                "the collection's feed omits the entry, because the entry has no `date`",
            );
            let place = TextPosition {
                line: 1,
                column: 1,
                length: 3,
            };
            let located = self.site.locate(diagnostic, &page.file, place);
            self.report
                .push(located.hint("add the date of the entry: `date: 2025-07-21`"));
        }
    }

    /// Adds a diagnostic at a place. `words` makes its message and hint, and is called only if the report lists it.
    fn report(
        &mut self,
        severity: Severity,
        code: Code,
        spot: ReferenceSpot<'_>,
        words: impl FnOnce() -> (String, Option<String>),
    ) {
        let site = self.site;
        let name = site.name_of(spot.file);
        self.report.add(severity, code, &name, || {
            let (message, hint) = words();
            let diagnostic = Diagnostic::error(code, &name, message);
            let located = site.locate(diagnostic, spot.file, spot.position(site));
            let told = match hint {
                Some(hint) => located.hint(hint),
                None => located,
            };
            Diagnostic { severity, ..told }
        });
    }
}

/// Returns the place of a byte range of a page's body, up to the end of its first line.
fn position_in(lines: &LineIndex<'_>, page: &Page, range: &Range<usize>) -> TextPosition {
    let line = lines.number(range.start);
    let before = &page.body[..range.start];
    let begin = before.rfind('\n').map_or(0, |end| end + 1);
    let words = &page.body[range.clone()];
    TextPosition {
        line: page.body_line + line - 1,
        column: before[begin..].chars().count() + 1,
        length: words
            .lines()
            .next()
            .map_or(1, |line| line.chars().count().max(1)),
    }
}

/// Whether a path from the tenant's root names a source file and not a page.
fn is_beside(path: &str) -> bool {
    path.starts_with("pages/")
}

/// Returns the existing path that an author most likely meant: the path without a file extension, or the most similar one.
fn nearest_path<'f>(path: &str, fragments: &'f Fragments) -> Option<&'f str> {
    let below = path.strip_prefix("/pages").unwrap_or(path);
    let stem = [".md", ".markdown", ".mdx", ".html", ".htm"]
        .iter()
        .find_map(|end| below.strip_suffix(end))
        .unwrap_or(below);
    let stem = stem.strip_suffix("index").unwrap_or(stem);
    let stem = match stem.trim_end_matches('/') {
        "" => "/",
        stem => stem,
    };
    let known = fragments.get_key_value(stem).map(|(key, _)| key.as_str());
    known.or_else(|| nearest(path, fragments.keys().map(String::as_str)))
}

/// Whether a file name is a URL of another site.
fn is_elsewhere(name: &str) -> bool {
    let is_scheme = |scheme: &str| scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let scheme = name.split_once(':').map(|(scheme, _)| scheme);
    name.starts_with("//") || scheme.is_some_and(|scheme| scheme.len() > 1 && is_scheme(scheme))
}

/// Returns the path in the tenant's folder of the file that a text in `file` names.
fn file_meant(name: &str, file: &str) -> String {
    let is_relative = name.starts_with("./") || name.starts_with("../");
    let below = ["assets/", "pages/"];
    beside(name, file)
        .filter(|path| is_relative && below.iter().any(|folder| path.starts_with(folder)))
        .unwrap_or_else(|| {
            let name = name.trim_start_matches(['.', '/']);
            format!("assets/{}", name.strip_prefix("assets/").unwrap_or(name))
        })
}

/// Returns the place of some words in line `line` of a file, or the start of that line.
fn position_of(words: &str, written: &str, line: usize) -> TextPosition {
    let found = written.find(words);
    TextPosition {
        line,
        column: found.map_or(0, |byte| written[..byte].chars().count()) + 1,
        length: found.map_or(1, |_| words.chars().count().max(1)),
    }
}

/// Returns the file that `typed` may be a misspelling of. Within the same folder, only the names count: a long folder would make any two files alike. In other folders, a file of the same name is meant, too.
fn nearest_file<'a>(
    typed: &str,
    known: impl Iterator<Item = &'a String> + Clone,
) -> Option<&'a str> {
    let split = |path: &str| path.rfind('/').map_or(0, |slash| slash + 1);
    let (folder, name) = typed.split_at(split(typed));
    let known = known.map(String::as_str);
    let is_beside = |path: &&str| path[..split(path)] == *folder;
    let beside = known.clone().filter(is_beside);
    let near = nearest(name, beside.clone().map(|path| &path[folder.len()..]));
    let near = near.and_then(|near| {
        beside
            .into_iter()
            .find(|path| path[folder.len()..] == *near)
    });
    let elsewhere = known.filter(|path| !is_beside(path));
    near.or_else(|| nearest(typed, elsewhere.clone()))
        .or_else(|| {
            elsewhere
                .into_iter()
                .find(|path| path[split(path)..] == *name)
        })
}

#[cfg(test)]
mod tests {
    #[test]
    fn file_of_the_same_folder_is_suggested_only_if_its_name_is_near() {
        let files = ["screens/today.png", "screens/splat.png", "logo.svg"];
        let files: Vec<String> = files.map(ToOwned::to_owned).into();
        let near = |typed| super::nearest_file(typed, files.iter());
        assert_eq!(near("screens/split.png"), Some("screens/splat.png"));
        assert_eq!(near("screens/history.png"), None);
        assert_eq!(near("assets/screens/today.png"), Some("screens/today.png"));
        assert_eq!(near("lgo.svg"), Some("logo.svg"));
    }
}
