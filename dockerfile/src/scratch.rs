use vmcell_rootfs::{Error, Fingerprint, Recipe, Tree};

/// The image with nothing in it.
pub(crate) struct Scratch;

impl Recipe for Scratch {
    fn name(&self) -> &str {
        "scratch"
    }

    fn fingerprint(&self, inputs: &mut Fingerprint) -> Result<(), Error> {
        inputs.field("generation", "1");
        Ok(())
    }

    fn tree(&self) -> Result<Tree, Error> {
        Ok(Tree::new())
    }
}
