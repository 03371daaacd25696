use super::{Flags, command_form::list};
use crate::syntax::HereDocument;

/// `COPY SOURCE… DESTINATION`, or ADD.
#[derive(Clone, Debug)]
pub(crate) struct CopyInstruction {
    pub(crate) from: CopyFrom,
    pub(crate) owner: Option<String>,
    pub(crate) mode: Option<u32>,
    pub(crate) sources: Vec<CopySource>,
    pub(crate) destination: String,
    /// Whether archives are unpacked, as ADD does.
    pub(crate) unpacks: bool,
}

/// Where the files are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CopyFrom {
    Context,
    /// A stage, by name or number, or an image.
    Image(String),
}

/// One of the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CopySource {
    /// A path, with wildcards.
    Path(String),
    Document(HereDocument),
}

impl CopyInstruction {
    pub(super) fn parse(
        keyword: &str,
        mut flags: Flags,
        arguments: &str,
        documents: Vec<HereDocument>,
    ) -> Result<Self, String> {
        let unpacks = keyword == "ADD";
        let from = match unpacks {
            true => None,
            false => flags.take("from")?,
        };
        let owner = flags.take("chown")?;
        let mode = flags.take("chmod")?;
        flags.finish(keyword)?;
        let parse_mode = |text: String| match u32::from_str_radix(&text, 8) {
            Ok(mode @ 0..=0o7777) => Ok(mode),
            _ => Err(format!("--chmod={text}: expected octal digits, as 755")),
        };
        let words = list(arguments);
        let words = words.unwrap_or_else(|| {
            let words = arguments.split_whitespace();
            words.map(str::to_owned).collect()
        });
        let Some((destination, sources)) = words.split_last().filter(|(_, rest)| !rest.is_empty())
        else {
            return Err(format!("{keyword} needs a source and a destination"));
        };
        let is_remote = |source: &&String| {
            let schemes = ["http://", "https://", "ftp://", "git://", "ssh://", "git@"];
            schemes.iter().any(|scheme| source.starts_with(scheme))
        };
        if let Some(remote) = sources.iter().find(is_remote) {
            return Err(format!(
                "{keyword} of {remote:?}: only local files are copied, a RUN can fetch others"
            ));
        }
        let mut documents = documents.into_iter();
        let sources = sources.iter().map(|source| match source.starts_with("<<") {
            true => documents.next().map(CopySource::Document),
            false => Some(CopySource::Path(source.clone())),
        });
        let sources: Option<_> = sources.collect();
        Ok(Self {
            from: from.map_or(CopyFrom::Context, CopyFrom::Image),
            owner,
            mode: mode.map(parse_mode).transpose()?,
            sources: sources.ok_or("a here-document has no name")?,
            destination: destination.clone(),
            unpacks,
        })
    }
}
