use std::collections::BTreeSet;

use crate::{
    BuildError,
    instruction::{CopyFrom, FromInstruction, Instruction, Step},
    syntax::Statements,
};

/// A Dockerfile that was read.
#[derive(Clone, Debug)]
pub(crate) struct Stages {
    /// The ARGs before the first stage.
    pub(crate) arguments: Vec<(String, Option<String>)>,
    pub(crate) list: Vec<Stage>,
    pub(crate) escape: char,
}

/// `FROM`, with all that follows up to the next one.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    pub(crate) line: usize,
    pub(crate) from: FromInstruction,
    pub(crate) steps: Vec<Step>,
}

/// What a stage or a COPY begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// An earlier stage, by its number.
    Stage(usize),
    /// An image that the caller provides.
    Image(String),
    /// Nothing.
    Scratch,
}

/// What a stage needs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Needed {
    /// Itself, and others.
    pub(crate) stages: BTreeSet<usize>,
    pub(crate) images: BTreeSet<String>,
    /// Whether it needs the empty image.
    pub(crate) scratch: bool,
}

impl Stages {
    pub(crate) fn read(text: &str) -> Result<Self, BuildError> {
        let Statements { list, escape } = Statements::read(text)?;
        let mut stages = Self {
            arguments: Vec::new(),
            list: Vec::new(),
            escape,
        };
        for statement in list {
            let step = Step::parse(statement, escape)?;
            let line = step.line;
            match (step.instruction, stages.list.last_mut()) {
                (Instruction::From(from), _) => stages.add(line, from)?,
                (instruction, Some(stage)) => stage.steps.push(Step {
                    instruction,
                    ..step
                }),
                (Instruction::Arg(arguments), None) => stages.arguments.extend(arguments),
                (_, None) => return Err(BuildError::at(line, "expected FROM before it")),
            }
        }
        match stages.list.is_empty() {
            true => Err(BuildError::at(1, "the file has no FROM")),
            false => Ok(stages),
        }
    }

    fn add(&mut self, line: usize, from: FromInstruction) -> Result<(), BuildError> {
        let name = from.name.as_deref();
        if let Some(name) = name.filter(|name| self.named(name, self.list.len()).is_some()) {
            return Err(BuildError::at(line, format!("a second stage {name:?}")));
        }
        self.list.push(Stage {
            line,
            from,
            steps: Vec::new(),
        });
        Ok(())
    }

    /// Returns the number of the stage with a name, of those before another.
    fn named(&self, name: &str, before: usize) -> Option<usize> {
        let stages = self.list.iter().take(before);
        let mut names = stages.map(|stage| stage.from.name.as_deref());
        names.position(|known| known.is_some_and(|known| known.eq_ignore_ascii_case(name)))
    }

    /// Returns what a FROM means.
    pub(crate) fn base(&self, image: &str, before: usize) -> Origin {
        match self.named(image, before) {
            Some(stage) => Origin::Stage(stage),
            None if image == "scratch" => Origin::Scratch,
            None => Origin::Image(image.to_owned()),
        }
    }

    /// Returns what `COPY --from` means.
    pub(crate) fn copied_from(&self, name: &str, before: usize) -> Result<Origin, String> {
        match name.parse::<usize>() {
            Ok(stage) if stage < before => Ok(Origin::Stage(stage)),
            Ok(stage) => Err(format!("there is no stage {stage} before this one")),
            Err(_) => Ok(self.base(name, before)),
        }
    }

    /// Returns the number of the stage to build: one by its name, or the last.
    pub(crate) fn target(&self, name: Option<&str>) -> Result<usize, BuildError> {
        let count = self.list.len();
        let Some(name) = name else {
            return Ok(count.saturating_sub(1));
        };
        let number = name.parse().ok().filter(|number| *number < count);
        number
            .or_else(|| self.named(name, count))
            .ok_or_else(|| BuildError::NoStage {
                name: name.to_owned(),
            })
    }

    /// Returns what a stage needs, given what each stage begins with.
    pub(crate) fn needed(&self, target: usize, bases: &[Origin]) -> Result<Needed, BuildError> {
        let mut needed = Needed::default();
        let mut left = vec![Origin::Stage(target)];
        while let Some(origin) = left.pop() {
            let number = match origin {
                Origin::Scratch => {
                    needed.scratch = true;
                    continue;
                }
                Origin::Image(name) => {
                    needed.images.insert(name);
                    continue;
                }
                Origin::Stage(number) => number,
            };
            let Some(stage) = self
                .list
                .get(number)
                .filter(|_| needed.stages.insert(number))
            else {
                continue;
            };
            left.extend(bases.get(number).cloned());
            for step in &stage.steps {
                if let Instruction::Copy(copy) = &step.instruction
                    && let CopyFrom::Image(name) = &copy.from
                {
                    let origin = self.copied_from(name, number);
                    left.push(origin.map_err(|problem| BuildError::at(step.line, problem))?);
                }
            }
        }
        Ok(needed)
    }
}
