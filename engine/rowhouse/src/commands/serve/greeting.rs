//! The greeting of `serve` on a terminal: the sites with their addresses and errors, and the address of the console.
//!
//! **Invariant:** makes text from plain values. A separate thread prints the text once, since a paused terminal blocks writes.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::thread;
use std::time::Duration;

use anstream::eprint;
use clap::builder::styling::{AnsiColor, Style};

use content::address::Origin;
use content::report::{Diagnostic, Severity};
use server::admin::status::{Availability, TenantStatus};
use supervisor::Registry;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const LINK: Style = AnsiColor::Cyan.on_default();
const READY: Style = AnsiColor::Green.on_default().bold();
const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();

/// The number of sites that fit a screen. Beyond this number, only sites with errors are listed.
const MAX_LISTED_SITES: usize = 20;

/// The values of the greeting.
#[derive(Debug)]
pub(crate) struct Greeting {
    /// The time from startup until requests are served.
    pub(crate) took: Duration,
    /// The addresses of the listeners for visitors.
    pub(crate) listen: Vec<SocketAddr>,
    /// The address of the admin listener.
    pub(crate) admin: SocketAddr,
    /// The sites.
    pub(crate) overview: Overview,
}

/// The sites with their errors and warnings.
#[derive(Debug)]
pub(crate) struct Overview {
    origin: Origin,
    sites: Vec<GreetedSite>,
    /// The problems of files outside of tenants' folders: themes, `deployment.yaml`.
    elsewhere: SiteProblems,
    /// The reason why the folders could not be read.
    alarm: Option<String>,
}

/// A site in the greeting.
#[derive(Debug)]
struct GreetedSite {
    id: String,
    state: Availability,
    is_in_flight: bool,
    /// The URLs of the site, the canonical one first.
    addresses: Vec<String>,
    problems: SiteProblems,
    is_preview: bool,
}

/// The numbers of errors and warnings, and the text of the first error or else the first warning.
#[derive(Debug, Default)]
struct SiteProblems {
    errors: usize,
    warnings: usize,
    first: Option<String>,
}

impl Overview {
    /// Returns the sites of the registry with their current problems.
    pub(crate) fn of(registry: &Registry) -> Self {
        let config = registry.config();
        let mut elsewhere = SiteProblems::default();
        let mut by_tenant: BTreeMap<String, SiteProblems> = BTreeMap::new();
        for diagnostic in registry.report().iter() {
            match owner(&diagnostic.file, &config.tenants) {
                Some(id) => by_tenant.entry(id).or_default().add(diagnostic),
                None => elsewhere.add(diagnostic),
            }
        }
        let mut addresses = addresses(registry);
        let status = registry.status();
        let site = |tenant: &TenantStatus| GreetedSite {
            id: tenant.id.to_string(),
            state: tenant.state,
            is_in_flight: tenant.is_in_flight,
            addresses: addresses.remove(&*tenant.id).unwrap_or_default(),
            problems: by_tenant.remove(&*tenant.id).unwrap_or_default(),
            is_preview: tenant.preview.is_some(),
        };
        Self {
            origin: config.origin.clone(),
            sites: status.tenants().map(site).collect(),
            // The remaining folders are not tenants.
            elsewhere: by_tenant
                .into_values()
                .fold(elsewhere, SiteProblems::merged),
            alarm: status.alarm,
        }
    }
}

/// Returns the id of the tenant whose folder has the file.
fn owner(file: &str, tenants: &Path) -> Option<String> {
    let within = Path::new(file).strip_prefix(tenants).ok()?;
    let folder = within.components().next()?;
    Some(folder.as_os_str().to_string_lossy().into_owned())
}

/// Returns the URLs of each tenant by its id: the canonical URL and, below `localhost`, the URL of the tenant's own host. Browsers resolve every name below `localhost` (RFC 6761, section 6.3).
fn addresses(registry: &Registry) -> BTreeMap<String, Vec<String>> {
    let origin = &registry.config().origin;
    let is_local = is_local(origin);
    let of_each = registry.sites().map(|(site, compiled)| {
        let mut all: Vec<_> = compiled
            .mounts
            .iter()
            .map(|mount| &mount.address)
            .filter(|address| address.canonical || (is_local && address.prefix.is_empty()))
            .collect();
        all.sort_by_key(|address| (!address.canonical, &address.host));
        let url = |host, prefix| format!("{}{prefix}", origin.at(host));
        let urls = all
            .iter()
            .map(|address| url(&address.host, &address.prefix));
        (site.id.to_string(), urls.take(2).collect())
    });
    of_each.collect()
}

fn is_local(origin: &Origin) -> bool {
    let domain = origin.domain();
    domain == "localhost" || domain.ends_with(".localhost")
}

impl SiteProblems {
    fn add(&mut self, diagnostic: &Diagnostic) {
        let is_first = match diagnostic.severity {
            Severity::Error => {
                self.errors += 1;
                self.errors == 1
            }
            Severity::Warning => {
                self.warnings += 1;
                self.errors == 0 && self.warnings == 1
            }
            Severity::Note => false,
        };
        if is_first {
            let place = diagnostic.position.map_or_else(String::new, |place| {
                format!(":{}:{}", place.line, place.column)
            });
            let (file, message) = (&diagnostic.file, &diagnostic.message);
            self.first = Some(format!("{file}{place}: {message}"));
        }
    }

    /// Returns the sums of both, with the text of the worse one.
    fn merged(self, other: Self) -> Self {
        let worse = other.errors > 0 && self.errors == 0;
        let (one, two) = if worse {
            (other.first, self.first)
        } else {
            (self.first, other.first)
        };
        Self {
            errors: self.errors + other.errors,
            warnings: self.warnings + other.warnings,
            first: one.or(two),
        }
    }

    fn is_empty(&self) -> bool {
        self.errors + self.warnings == 0
    }
}

impl fmt::Display for SiteProblems {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count| if count == 1 { "" } else { "s" };
        let (errors, warnings) = (self.errors, self.warnings);
        if errors > 0 {
            write!(
                formatter,
                "{ERROR}{errors} error{}{ERROR:#}",
                plural(errors)
            )?;
        }
        if errors > 0 && warnings > 0 {
            formatter.write_str(", ")?;
        }
        if warnings > 0 {
            let plural = plural(warnings);
            write!(formatter, "{WARNING}{warnings} warning{plural}{WARNING:#}")?;
        }
        match &self.first {
            Some(first) => write!(formatter, "  {first}"),
            None => Ok(()),
        }
    }
}

impl GreetedSite {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>, widths: [usize; 2]) -> fmt::Result {
        let [id, address] = widths;
        write!(formatter, "  {BOLD}{:id$}{BOLD:#}", self.id)?;
        let note = match (self.is_in_flight, self.state) {
            (true, _) => "being rendered",
            (false, Availability::Pending) => "queued for rendering",
            (false, Availability::Live) if self.is_preview => "preview",
            (false, Availability::Live) => "",
            (false, Availability::Expired) => "preview, too old to be served",
            (false, Availability::Receiving) => "waiting for an upload to end",
            (false, Availability::Degraded) => "serving the last valid pages",
            (false, Availability::Absent | Availability::Removed) => "not served",
        };
        if let [canonical, own @ ..] = &self.addresses[..] {
            write!(formatter, "  {LINK}{canonical}{LINK:#}")?;
            let is_last = own.is_empty() && note.is_empty();
            let gap = if is_last {
                0
            } else {
                address - canonical.len()
            };
            write!(formatter, "{:gap$}", "")?;
            for own in own {
                write!(formatter, "  {DIM}{own}{DIM:#}")?;
            }
        }
        if !note.is_empty() {
            let is_bad = self.state == Availability::Absent && !self.is_in_flight;
            let style = match self.state {
                _ if is_bad => ERROR,
                Availability::Live if !self.is_in_flight => DIM,
                _ => WARNING,
            };
            write!(formatter, "  {style}{note}{style:#}")?;
        }
        writeln!(formatter)?;
        if !self.problems.is_empty() {
            writeln!(formatter, "  {:id$}  {}", "", self.problems)?;
        }
        Ok(())
    }
}

impl fmt::Display for Greeting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (version, took) = (env!("CARGO_PKG_VERSION"), duration(self.took));
        writeln!(
            formatter,
            "\n  {READY}rowhouse{READY:#} {version}  {DIM}ready in {took}{DIM:#}\n"
        )?;
        self.overview.fmt(formatter)?;
        let listen: Vec<String> = self.listen.iter().map(ToString::to_string).collect();
        let admin = reachable(self.admin);
        writeln!(
            formatter,
            "\n  {DIM}Listening{DIM:#}  {}",
            listen.join(", ")
        )?;
        if let Some(port) = self.other_port() {
            let domain = self.overview.origin.domain();
            writeln!(
                formatter,
                "             {WARNING}the URLs above have another port: set `--origin http://{domain}:{port}`{WARNING:#}"
            )?;
        }
        writeln!(
            formatter,
            "  {DIM}Console{DIM:#}    {LINK}http://{admin}/{LINK:#}"
        )?;
        writeln!(formatter, "  {DIM}Stop{DIM:#}       Ctrl-C\n")
    }
}

impl fmt::Display for Overview {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_listed = |number: usize, site: &GreetedSite| {
            number < MAX_LISTED_SITES || site.problems.errors > 0
        };
        let all = self.sites.iter().enumerate();
        let listed: Vec<&GreetedSite> = all
            .filter(|(number, site)| is_listed(*number, site))
            .map(|(_, site)| site)
            .take(2 * MAX_LISTED_SITES)
            .collect();
        let widest = |lengths: &mut dyn Iterator<Item = usize>| lengths.max().unwrap_or(0);
        let ids = widest(&mut listed.iter().map(|site| site.id.len()));
        let canonical = listed.iter().filter_map(|site| site.addresses.first());
        let addresses = widest(&mut canonical.map(String::len));
        for site in &listed {
            site.fmt(formatter, [ids, addresses])?;
        }
        let more = self.sites.len() - listed.len();
        if more > 0 {
            writeln!(
                formatter,
                "  {DIM}and {more} more: `rowhouse routes`{DIM:#}"
            )?;
        }
        if self.sites.is_empty() {
            writeln!(
                formatter,
                "  No sites yet: create one with `rowhouse new NAME`."
            )?;
        }
        if !self.elsewhere.is_empty() {
            writeln!(formatter, "\n  {}", self.elsewhere)?;
        }
        if let Some(alarm) = &self.alarm {
            writeln!(formatter, "\n  {ERROR}alarm{ERROR:#}  {alarm}")?;
        }
        if !self.elsewhere.is_empty() || self.sites.iter().any(|site| !site.problems.is_empty()) {
            writeln!(
                formatter,
                "\n  `rowhouse check` shows each error and warning with its line and a hint."
            )?;
        }
        Ok(())
    }
}

impl Greeting {
    /// Prints the greeting on a thread of its own: a paused terminal (Ctrl-S) blocks only that thread.
    pub(crate) fn print(self) {
        let text = self.to_string();
        let say = move || eprint!("{text}");
        // Without the thread there is no greeting, and everything else works.
        let _ = thread::Builder::new()
            .name("greeting".to_owned())
            .spawn(say);
    }

    /// Returns the port of the listener, if it differs from the port in the sites' URLs on this machine.
    fn other_port(&self) -> Option<u16> {
        let origin = &self.overview.origin;
        let port = self.listen.first()?.port();
        let here = format!("http://{}:{port}", origin.domain());
        (is_local(origin) && !origin.is_secure() && origin.to_string() != here).then_some(port)
    }
}

/// Returns the host and port that a browser on this machine can open: `localhost`, as in the URLs of the sites, for the addresses that `localhost` reaches.
fn reachable(address: SocketAddr) -> String {
    let ip = address.ip();
    let has_name = ip.is_unspecified() || ip == Ipv4Addr::LOCALHOST || ip == Ipv6Addr::LOCALHOST;
    match has_name {
        true => format!("localhost:{}", address.port()),
        false => address.to_string(),
    }
}

fn duration(time: Duration) -> String {
    match time.as_millis() {
        milliseconds @ 0..1000 => format!("{milliseconds} ms"),
        _ => format!("{:.1} s", time.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use anstream::adapter::strip_str;
    use content::report::{Code, TextPosition};

    fn problems(list: &[Diagnostic]) -> SiteProblems {
        let mut problems = SiteProblems::default();
        list.iter().for_each(|diagnostic| problems.add(diagnostic));
        problems
    }

    fn site(id: &str, state: Availability, problems: SiteProblems) -> GreetedSite {
        let mut addresses = vec![
            format!("http://localhost:8080/{id}"),
            format!("http://{id}.localhost:8080"),
        ];
        if state == Availability::Absent {
            addresses.clear();
        }
        GreetedSite {
            id: id.to_owned(),
            state,
            is_in_flight: false,
            addresses,
            problems,
            is_preview: false,
        }
    }

    fn greeting(sites: Vec<GreetedSite>) -> Greeting {
        Greeting {
            took: Duration::from_millis(412),
            listen: vec![([127, 0, 0, 1], 8080).into()],
            admin: ([0, 0, 0, 0], 8081).into(),
            overview: Overview {
                origin: "http://localhost:8080".parse().unwrap(),
                sites,
                elsewhere: SiteProblems::default(),
                alarm: None,
            },
        }
    }

    #[test]
    fn greeting_has_sites_problems_and_the_console() {
        let place = TextPosition {
            line: 2,
            column: 1,
            length: 6,
        };
        let error =
            |file, message| Diagnostic::error(Code::UnknownKey, file, message).at(place, "");
        let mut studio = site("studio", Availability::Live, SiteProblems::default());
        studio.addresses = vec!["http://localhost:8080".to_owned()];
        let warning = |file| Diagnostic::warning(Code::TitleLength, file, "the title is long");
        let mut slow = site("slow", Availability::Absent, SiteProblems::default());
        slow.is_in_flight = true;
        let mut greeting = greeting(vec![
            site(
                "bluedoor",
                Availability::Live,
                problems(&[warning("tenants/bluedoor/pages/index.md")]),
            ),
            site(
                "sample",
                Availability::Absent,
                problems(&[
                    warning("tenants/sample/pages/index.md"),
                    error("tenants/sample/tenant.yaml", "unknown key `tagine`"),
                ]),
            ),
            slow,
            studio,
            site(
                "verses",
                Availability::Degraded,
                problems(&[
                    error("tenants/verses/tenant.yaml", "unknown key `nmae`"),
                    error("tenants/verses/pages/index.md", "unknown key `titel`"),
                ]),
            ),
        ]);
        greeting.overview.elsewhere =
            problems(&[error("themes/base/theme.yaml", "unknown key `x`")]);
        greeting.overview.alarm = Some("the folder `tenants` cannot be read".to_owned());
        let text = strip_str(&greeting.to_string()).to_string();
        assert_eq!(text, include_str!("greeting/expected.txt"), "\n{text}");
    }

    #[test]
    fn preview_is_named_as_one() {
        let mut preview = site("corner@spring", Availability::Live, SiteProblems::default());
        preview.addresses = vec!["http://spring--corner.localhost:8080".to_owned()];
        preview.is_preview = true;
        let mut old = site("corner@old", Availability::Expired, SiteProblems::default());
        old.addresses = vec!["http://old--corner.localhost:8080".to_owned()];
        old.is_preview = true;
        let text = strip_str(&greeting(vec![old, preview]).to_string()).to_string();
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        for expected in [
            "corner@old     http://old--corner.localhost:8080     preview, too old to be served",
            "corner@spring  http://spring--corner.localhost:8080  preview",
        ] {
            assert!(lines.contains(&expected), "{text}");
        }
    }

    #[test]
    fn many_sites_are_counted_except_those_with_errors() {
        let mut sites: Vec<GreetedSite> = (0..1000)
            .map(|number| {
                site(
                    &format!("t{number}"),
                    Availability::Live,
                    SiteProblems::default(),
                )
            })
            .collect();
        let error = Diagnostic::error(
            Code::UnknownKey,
            "tenants/t900/tenant.yaml",
            "unknown key `a`",
        );
        sites[900].problems = problems(&[error]);
        let text = strip_str(&greeting(sites).to_string()).to_string();
        assert!(
            text.contains("tenants/t900/tenant.yaml: unknown key `a`"),
            "{text}"
        );
        assert!(text.contains("and 979 more"), "{text}");
        assert!(text.lines().count() < 40, "{text}");
    }

    #[test]
    fn another_port_in_the_origin_is_reported() {
        let mut greeting = greeting(Vec::new());
        assert!(!greeting.to_string().contains("--origin"));
        greeting.listen = vec![([127, 0, 0, 1], 9000).into()];
        let text = greeting.to_string();
        assert!(
            text.contains("set `--origin http://localhost:9000`"),
            "{text}"
        );
        greeting.overview.origin = "https://studio.example".parse().unwrap();
        assert!(
            !greeting.to_string().contains("--origin"),
            "a proxy listens there"
        );
    }

    #[test]
    fn file_belongs_to_the_tenant_of_its_folder() {
        let owner = |file| owner(file, Path::new("sites/tenants"));
        assert_eq!(
            owner("sites/tenants/a/pages/index.md").as_deref(),
            Some("a")
        );
        assert_eq!(owner("sites/tenants/a").as_deref(), Some("a"));
        assert_eq!(owner("themes/base/theme.yaml"), None);
    }
}
