//! Renders React components to HTML in this process. QuickJS runs the same sources that browsers get.
//!
//! Each rendering thread has its own engine, created when the first island needs it.
//! An engine that threw, or exceeded the limit on steps or memory, is dropped. A new engine costs 10 ms and is in a known state.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use rowhouse_ui::Bundle;
use rquickjs::context::EvalOptions;
use rquickjs::{CatchResultExt, Context, Function, Runtime};
use serde_json::Value as Json;
use thiserror::Error;

use super::markdown::escape;
use crate::compile::cache::{self, Cache};
use crate::resources::asset::{ASSETS, Asset, policy_hash};
use crate::resources::encodings::compress::CompressionLevel;
use crate::resources::file_resource::shared_files;
use content::report::{Code, hint_for};
use content::schema::{Schema, SchemaError};
use content::yaml::Node;
use release::snapshot::ResourceTable;

/// Limit on the interrupt checks of QuickJS, which happen every ten thousand steps. The limit is about one second of work.
///
/// Steps are counted instead of timed, so that slow or busy machines decide the same. The largest island of the theme needs three checks.
const MAX_INTERRUPT_CHECKS: u32 = 2_500;
/// Limit on the memory of an engine, in bytes. The bundle needs 1.5 MB.
const MAX_MEMORY_BYTES: usize = 32 << 20;
/// Limit on the stack of JavaScript, in bytes, well below the stack of a thread.
const MAX_STACK_BYTES: usize = 512 << 10;

/// Limit on the results that an engine caches.
const MAX_CACHED_RESULTS: usize = 64;

/// The islands' bundle, with its files compressed once for all tenants and themes.
#[derive(Debug)]
pub struct Islands {
    /// The bundle.
    pub bundle: Bundle,
    /// Its files by path, as resources.
    pub files: ResourceTable,
    /// The live-reload script, which every page loads with `--dev`; `None` without `--dev`.
    pub dev: Option<Asset>,
    /// The hash of the inline loader, for the Content-Security-Policy.
    pub(super) loader_hash: String,
    /// The words in each file that may be class names, by file name.
    words: BTreeMap<String, BTreeSet<Box<str>>>,
    /// The files that each island may run, by island name.
    run: BTreeMap<String, BTreeSet<String>>,
    /// The schema of each island's properties, by island name.
    schemas: BTreeMap<String, Result<Schema, SchemaError>>,
}

impl Islands {
    /// Hashes and compresses the bundle's files. `is_secure` means that the deployment uses TLS.
    #[must_use]
    pub fn new(bundle: Bundle, is_secure: bool) -> Self {
        let assets: Vec<Asset> = bundle
            .files()
            .map(|(name, bytes)| {
                let brotli = bundle.brotli(name).map(Bytes::copy_from_slice);
                Asset::named(name.to_owned(), Bytes::copy_from_slice(bytes)).with_brotli(brotli)
            })
            .collect();
        Self {
            files: shared_files(
                &assets,
                CompressionLevel::Shared,
                is_secure,
                &Cache::default(),
            ),
            loader_hash: policy_hash(bundle.loader()),
            run: run(&bundle, &assets),
            words: assets
                .iter()
                .map(|asset| (asset.hashed_name.clone(), class_words(&asset.bytes)))
                .collect(),
            schemas: bundle
                .manifest()
                .islands
                .iter()
                .map(|(name, island)| {
                    let schema = Schema::new(island.props.clone(), |_, _| Ok(()));
                    (name.clone(), schema)
                })
                .collect(),
            dev: None,
            bundle,
        }
    }

    /// Adds the live-reload script, for `--dev`.
    #[must_use]
    pub fn with_dev_script(mut self, is_secure: bool) -> Self {
        let script = Bytes::copy_from_slice(self.bundle.dev_script().as_bytes());
        let script = Asset::new("dev.js", script);
        self.files.extend(shared_files(
            std::slice::from_ref(&script),
            CompressionLevel::Shared,
            is_secure,
            &Cache::default(),
        ));
        self.dev = Some(script);
        self
    }

    /// Whether a hydrated island may give an element this class.
    pub(super) fn may_write(&self, island: &str, class: &str) -> bool {
        let mut files = self.run.get(island).into_iter().flatten();
        files.any(|file| {
            let words = self.words.get(file);
            words.is_some_and(|words| words.contains(class))
        })
    }
}

/// Returns the files of each island: its own files, the files that all islands share, and all files that these files may load later.
fn run(bundle: &Bundle, assets: &[Asset]) -> BTreeMap<String, BTreeSet<String>> {
    let named = |script: &[u8]| {
        let script = String::from_utf8_lossy(script);
        let named = assets.iter().map(|asset| &asset.hashed_name);
        let named = named.filter(|name| script.contains(name.as_str()));
        named.cloned().collect::<Vec<_>>()
    };
    let names: BTreeMap<&str, Vec<String>> = assets
        .iter()
        .map(|asset| (asset.hashed_name.as_str(), named(&asset.bytes)))
        .collect();
    let of_all = named(bundle.loader().as_bytes());
    let islands = bundle.manifest().islands.iter();
    islands
        .map(|(name, island)| {
            let mut files = BTreeSet::new();
            let mut next = of_all.clone();
            next.push(island.file.clone());
            while let Some(file) = next.pop() {
                if files.insert(file.clone()) {
                    next.extend(names.get(file.as_str()).into_iter().flatten().cloned());
                }
            }
            (name.clone(), files)
        })
        .collect()
}

/// Returns the words of a script that look like a class name.
fn class_words(script: &[u8]) -> BTreeSet<Box<str>> {
    let is_part = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
    let words = script.split(|byte| !is_part(byte));
    let words = words.filter(|word| word.len() > 2 && word[0].is_ascii_lowercase());
    words
        .filter_map(|word| std::str::from_utf8(word).ok().map(Box::from))
        .collect()
}

/// When an island is hydrated in the browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hydration {
    /// As soon as the page loads.
    Load,
    /// When the browser is idle.
    Idle,
    /// When the island comes into view.
    Visible,
    /// When a media query matches.
    Media(String),
    /// When a visitor interacts with the island.
    Interaction,
    /// Never: the island is static markup.
    None,
}

impl Hydration {
    /// The values of `client` in templates.
    pub const NAMES: [&str; 6] = ["load", "idle", "visible", "media", "interaction", "none"];

    const fn name(&self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Idle => "idle",
            Self::Visible => "visible",
            Self::Media(_) => "media",
            Self::Interaction => "interaction",
            Self::None => "none",
        }
    }
}

/// A use of an island in a template.
#[derive(Debug)]
pub(super) struct IslandCall<'a> {
    /// The name of the component.
    pub name: &'a str,
    /// Its properties.
    pub props: &'a Json,
    /// When the island is hydrated.
    pub client: Hydration,
    /// The prefix of its generated ids, unique on the page.
    pub prefix: &'a str,
}

/// The reason why an island could not be rendered.
#[derive(Debug, Error)]
pub(super) enum IslandError {
    /// No island has this name.
    #[error("unknown island `{name}`: {hint}")]
    Unknown {
        /// The name.
        name: String,
        /// A suggestion, or all names.
        hint: String,
    },
    /// The properties do not fit the island's schema.
    #[error("island `{name}`: {problems}")]
    Props {
        /// The name.
        name: String,
        /// Every problem with the properties.
        problems: String,
    },
    /// The component threw, or exceeded a limit.
    #[error("island `{name}` failed: {reason}")]
    Failed {
        /// The name.
        name: String,
        /// The reason, with the JavaScript stack.
        reason: String,
    },
}

impl IslandError {
    /// Returns the code of the diagnostic.
    #[must_use]
    pub(super) const fn code(&self) -> Code {
        match self {
            Self::Unknown { .. } | Self::Props { .. } => Code::IslandProps,
            Self::Failed { .. } => Code::IslandFailed,
        }
    }
}

/// Renders an island to the markup of a page.
///
/// # Errors
/// Returns an error if the island does not exist, its properties do not fit, or it fails.
pub(super) fn render(
    islands: &Islands,
    call: &IslandCall<'_>,
    cache: &Cache,
) -> Result<String, IslandError> {
    let bundle = &islands.bundle;
    check_props(islands, call)?;
    let islands = &bundle.manifest().islands;
    let island = islands.get(call.name).ok_or_else(|| IslandError::Unknown {
        name: call.name.to_owned(),
        hint: hint_for(call.name, islands.keys().map(String::as_str)),
    })?;
    let props = call.props.to_string();
    let html = if island.server {
        let key = cache::key(
            "island",
            &[
                bundle.id().as_bytes(),
                call.name.as_bytes(),
                &[u8::from(call.client == Hydration::None)],
                props.as_bytes(),
                call.prefix.as_bytes(),
            ],
        );
        let render = || {
            in_engine(bundle, |engine| {
                engine.cached_or_rendered(key, call, &props)
            })
        };
        let html = cache
            .get(key, render)
            .map_err(|reason| IslandError::Failed {
                name: call.name.to_owned(),
                reason,
            })?;
        String::from_utf8_lossy(&html).into_owned()
    } else {
        String::new()
    };
    if call.client == Hydration::None {
        return Ok(html);
    }
    let media = match &call.client {
        Hydration::Media(query) => format!(" media=\"{}\"", escape(query)),
        _ => String::new(),
    };
    let render = if island.server {
        ""
    } else {
        " render=\"browser\""
    };
    Ok(format!(
        "<row-island name=\"{}\" client=\"{}\"{media}{render} src=\"{}{}\" prefix=\"{}\" props=\"{}\">{html}</row-island>",
        call.name,
        call.client.name(),
        ASSETS,
        island.file,
        call.prefix,
        escape(&props),
    ))
}

fn check_props(islands: &Islands, call: &IslandCall<'_>) -> Result<(), IslandError> {
    let schema = match islands.schemas.get(call.name) {
        Some(Ok(schema)) => schema,
        Some(Err(error)) => {
            return Err(IslandError::Failed {
                name: call.name.to_owned(),
                reason: error.to_string(),
            });
        }
        None => return Ok(()),
    };
    let (problems, _) = schema.check(&Node::from_json(call.props));
    if problems.is_empty() {
        return Ok(());
    }
    let problems: Vec<String> = problems
        .into_iter()
        .map(|problem| match problem.hint {
            Some(hint) => format!("{} ({hint})", problem.message),
            None => problem.message,
        })
        .collect();
    Err(IslandError::Props {
        name: call.name.to_owned(),
        problems: problems
            .join("; ")
            .replace("the file needs", "its properties need")
            .replace("the file", "its properties"),
    })
}

thread_local! {
    static ENGINE: RefCell<Option<(String, Engine)>> = const { RefCell::new(None) };
}

/// Runs `work` in this thread's engine, and drops the engine if `work` fails.
fn in_engine(
    bundle: &Bundle,
    work: impl FnOnce(&mut Engine) -> Result<Bytes, String>,
) -> Result<Bytes, String> {
    ENGINE.with(|cell| {
        let mut slot = cell.borrow_mut();
        let fresh = slot.as_ref().is_none_or(|(id, _)| id != bundle.id());
        if fresh {
            *slot = Some((
                bundle.id().to_owned(),
                Engine::start(bundle.server_script())?,
            ));
        }
        let result = match slot.as_mut() {
            Some((_, engine)) => work(engine),
            None => Err("the JavaScript engine is not running".to_owned()),
        };
        if result.is_err() {
            *slot = None;
        }
        result
    })
}

struct Engine {
    runtime: Runtime,
    context: Context,
    /// The last results, shared by tenants whose islands have the same content.
    known: HashMap<cache::CacheKey, Bytes>,
}

impl Engine {
    fn start(script: &str) -> Result<Self, String> {
        let runtime = Runtime::new().map_err(|error| error.to_string())?;
        runtime.set_memory_limit(MAX_MEMORY_BYTES);
        runtime.set_max_stack_size(MAX_STACK_BYTES);
        let context = Context::full(&runtime).map_err(|error| error.to_string())?;
        let engine = Self {
            runtime,
            context,
            known: HashMap::new(),
        };
        // Components may log, which must not fail. The lines are dropped.
        engine.within_limits(|| {
            engine.context.with(|context| {
                let console = "globalThis.console ??= Object.fromEntries(['debug','error','info','log','warn'].map((name) => [name, () => {}]));";
                context
                    .eval::<(), _>(console)
                    .and_then(|()| {
                        let mut options = EvalOptions::default();
                        options.filename = Some("server.js".to_owned());
                        options.strict = false;
                        context.eval_with_options::<(), _>(script, options)
                    })
                    .catch(&context)
                    .map_err(|error| error.to_string())
            })
        })?;
        Ok(engine)
    }

    fn cached_or_rendered(
        &mut self,
        key: cache::CacheKey,
        call: &IslandCall<'_>,
        props: &str,
    ) -> Result<Bytes, String> {
        if let Some(html) = self.known.get(&key) {
            return Ok(html.clone());
        }
        let html = self.render(call, props)?;
        let html = Bytes::from(html.into_bytes().into_boxed_slice());
        if self.known.len() == MAX_CACHED_RESULTS {
            self.known.clear();
        }
        self.known.insert(key, html.clone());
        Ok(html)
    }

    fn render(&self, call: &IslandCall<'_>, props: &str) -> Result<String, String> {
        let function = if call.client == Hydration::None {
            "renderStatic"
        } else {
            "render"
        };
        self.within_limits(|| {
            self.context.with(|context| {
                context
                    .globals()
                    .get::<_, Function<'_>>(function)
                    .and_then(|function| {
                        function.call::<_, String>((call.name, props, call.prefix))
                    })
                    .catch(&context)
                    .map_err(|error| error.to_string().trim().to_owned())
            })
        })
    }

    fn within_limits<T>(&self, work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
        let asked = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&asked);
        self.runtime.set_interrupt_handler(Some(Box::new(move || {
            counter.fetch_add(1, Relaxed) >= MAX_INTERRUPT_CHECKS
        })));
        let result = work();
        self.runtime.set_interrupt_handler(None);
        match result {
            Err(_) if asked.load(Relaxed) > MAX_INTERRUPT_CHECKS => {
                Err("the component did not end within 25 million steps".to_owned())
            }
            other => other,
        }
    }
}
