use std::{
    collections::BTreeMap,
    fmt, fs,
    path::{Path, PathBuf},
};

use vmcell::VmBuilder;

use crate::{
    BuildError, Plan,
    copy::Context,
    instruction::Instruction,
    settings::{OuterArguments, PLATFORM, Settings},
    stage::{Origin, Stages},
};

/// A build that is about to start.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use std::collections::BTreeMap;
/// use vmcell_dockerfile::{BaseImage, Build, BuildEvent};
/// use vmcell_rootfs::catalog::Catalog;
///
/// let catalog = Catalog::user()?;
/// let plan = Build::new("Dockerfile").context(".").argument("VERSION", "1.2").plan()?;
/// let mut images = BTreeMap::new();
/// for name in plan.images() {
///     let (path, defaults) = catalog.image(name, |_| {})?.ok_or("no such environment")?;
///     images.insert(name.to_owned(), BaseImage { path, defaults });
/// }
/// let built = plan.run(&catalog, "tool", &images, async |event| {
///     if let BuildEvent::Step { number, count, text, .. } = event {
///         println!("{number}/{count} {text}");
///     }
/// });
/// println!("{}", built.await?.name);
/// # Ok(())
/// # }
/// ```
pub struct Build {
    file: PathBuf,
    context: Option<PathBuf>,
    arguments: BTreeMap<String, String>,
    target: Option<String>,
    pub(crate) options: BuildOptions,
}

/// How the steps are run.
pub(crate) struct BuildOptions {
    pub(crate) no_cache: bool,
    pub(crate) disk_mib: u32,
    pub(crate) configure: Box<dyn Fn(VmBuilder) -> VmBuilder + Send + Sync>,
}

/// The largest Dockerfile.
const MAX_BYTES: u64 = 4 << 20;

impl Build {
    /// Builds from a Dockerfile. Its folder is the context.
    pub fn new(file: impl Into<PathBuf>) -> Self {
        Self {
            file: file.into(),
            context: None,
            arguments: BTreeMap::new(),
            target: None,
            options: BuildOptions {
                no_cache: false,
                disk_mib: 0,
                configure: Box::new(|builder| builder),
            },
        }
    }

    /// Sets the folder whose files can be copied.
    #[must_use]
    pub fn context(mut self, folder: impl Into<PathBuf>) -> Self {
        self.context = Some(folder.into());
        self
    }

    /// Sets the value of an ARG.
    #[must_use]
    pub fn argument(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.arguments.insert(name.into(), value.into());
        self
    }

    /// Builds a stage, by its name or number, in place of the last one.
    #[must_use]
    pub fn target(mut self, stage: impl Into<String>) -> Self {
        self.target = Some(stage.into());
        self
    }

    /// Does all steps again, whether or not they were done before.
    #[must_use]
    pub fn no_cache(mut self, no_cache: bool) -> Self {
        self.options.no_cache = no_cache;
        self
    }

    /// Sets the size of the disk in MiB; that of the base by default, which is also the least.
    #[must_use]
    pub fn disk_mib(mut self, mib: u32) -> Self {
        self.options.disk_mib = mib;
        self
    }

    /// Configures the VMs of the steps: their memory, their processors, and what they may reach
    /// (nothing by default).
    #[must_use]
    pub fn vm(
        mut self,
        configure: impl Fn(VmBuilder) -> VmBuilder + Send + Sync + 'static,
    ) -> Self {
        self.options.configure = Box::new(configure);
        self
    }

    /// Reads the Dockerfile, and finds out what is to be done. Nothing is started.
    ///
    /// # Errors
    /// [`BuildError::Line`] if something in it is wrong or not known, and if a file cannot be
    /// read.
    pub fn plan(self) -> Result<Plan, BuildError> {
        let text = read(&self.file)?;
        let stages = Stages::read(&text)?;
        let folder = self.file.parent().filter(|folder| *folder != Path::new(""));
        let context = self.context.as_deref().or(folder);
        let context = Context::open(context.unwrap_or(Path::new(".")), &self.file)?;
        let outer = outer_arguments(&stages, self.arguments)?;
        let mut bases = Vec::new();
        for (number, stage) in stages.list.iter().enumerate() {
            let base = base(&stages, number, &outer);
            bases.push(base.map_err(|problem| BuildError::at(stage.line, problem))?);
        }
        let target = stages.target(self.target.as_deref())?;
        let needed = stages.needed(target, &bases)?;
        let source = std::path::absolute(&self.file).map_err(BuildError::read(&self.file))?;
        Ok(Plan {
            source,
            context,
            stages,
            bases,
            outer,
            target,
            needed,
            options: self.options,
        })
    }
}

impl fmt::Debug for Build {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Build")
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

fn read(path: &Path) -> Result<String, BuildError> {
    use std::io::Read as _;
    let read = || {
        let mut text = String::new();
        let file = fs::File::open(path)?.take(MAX_BYTES + 1);
        { file }.read_to_string(&mut text)?;
        match text.len() as u64 > MAX_BYTES {
            true => Err(std::io::ErrorKind::FileTooLarge.into()),
            false => Ok(text),
        }
    };
    read().map_err(BuildError::read(path))
}

/// Checks that all given arguments are declared, and evaluates those before the first stage.
fn outer_arguments(
    stages: &Stages,
    given: BTreeMap<String, String>,
) -> Result<OuterArguments, BuildError> {
    let steps = stages.list.iter().flat_map(|stage| &stage.steps);
    let declared = steps.filter_map(|step| match &step.instruction {
        Instruction::Arg(arguments) => Some(arguments),
        _ => None,
    });
    let declared: Vec<_> = declared
        .flatten()
        .chain(&stages.arguments)
        .map(|(name, _)| name.as_str())
        .collect();
    if let Some(name) = given.keys().find(|name| !declared.contains(&name.as_str())) {
        return Err(BuildError::UnknownArgument { name: name.clone() });
    }
    let platform = PLATFORM.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut outer = OuterArguments {
        given,
        global: platform.into(),
    };
    for (name, default) in &stages.arguments {
        let expanded = default
            .as_deref()
            .map(|text| expand_global(&outer, stages, text));
        let expanded = expanded.transpose();
        let default = expanded.map_err(|problem| BuildError::at(1, problem))?;
        if let Some(value) = outer.given.get(name).cloned().or(default) {
            outer.global.insert(name.clone(), value);
        }
    }
    Ok(outer)
}

/// Expands a text with the ARGs before the first stage.
fn expand_global(outer: &OuterArguments, stages: &Stages, text: &str) -> Result<String, String> {
    let mut settings = Settings::new(Default::default(), stages.escape);
    let names = outer.global.keys().map(|name| (name.clone(), None));
    settings.apply(&Instruction::Arg(names.collect()), outer)?;
    settings.expand(text)
}

/// Returns what a stage begins with.
fn base(stages: &Stages, number: usize, outer: &OuterArguments) -> Result<Origin, String> {
    let Some(stage) = stages.list.get(number) else {
        return Ok(Origin::Scratch);
    };
    let expand = |text: &str| expand_global(outer, stages, text);
    if let Some(platform) = &stage.from.platform {
        let platform = expand(platform)?;
        if platform != "linux/amd64" {
            return Err(format!("only linux/amd64 is built, not {platform:?}"));
        }
    }
    match expand(&stage.from.image)? {
        image if image.is_empty() => Err("FROM has no image: an ARG has no value".to_owned()),
        image => Ok(stages.base(&image, number)),
    }
}
