//! What a tool is.

use std::{pin::Pin, sync::Arc};

use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{call::Call, failure::Failure, hints::Hints, schema};

/// A tool that a model can call.
pub(crate) trait Tool: 'static {
    const NAME: &'static str;
    const TITLE: &'static str;
    /// What it does, when to use it, and what to do next.
    const DESCRIPTION: &'static str;
    const HINTS: Hints;
    type Input: DeserializeOwned + JsonSchema + Send;
    type Output: Serialize + JsonSchema;

    fn run(
        call: Call,
        input: Self::Input,
    ) -> impl Future<Output = Result<Self::Output, Failure>> + Send;
}

/// A tool as clients see it, and how it is called.
pub(crate) struct Definition {
    pub(crate) tool: rmcp::model::Tool,
    run: Run,
}

pub(crate) type Run =
    fn(Call, Value) -> Pin<Box<dyn Future<Output = Result<Value, Failure>> + Send>>;

impl Definition {
    pub(crate) fn of<T: Tool>(omitted_fields: &[&str]) -> Self {
        let mut input = schema::of_input::<T::Input>();
        for field in omitted_fields {
            for list in ["properties", "required"] {
                match input.get_mut(list) {
                    Some(Value::Object(properties)) => drop(properties.remove(*field)),
                    Some(Value::Array(names)) => names.retain(|name| name != field),
                    _ => {}
                }
            }
        }
        let tool = rmcp::model::Tool::new(T::NAME, T::DESCRIPTION, Arc::new(input))
            .with_raw_output_schema(schema::of_output::<T::Output>())
            .with_annotations(T::HINTS.annotations(T::TITLE));
        Self::new(tool, |call, input| Box::pin(run::<T>(call, input)))
    }

    pub(crate) fn new(tool: rmcp::model::Tool, run: Run) -> Self {
        Self { tool, run }
    }

    /// Returns the same tool, which only reads its arguments.
    #[cfg(feature = "fuzzing")]
    pub(crate) fn reading_only<T: Tool>(omitted_fields: &[&str]) -> Self {
        let Self { tool, .. } = Self::of::<T>(omitted_fields);
        Self::new(tool, |_, input| {
            Box::pin(async move {
                read::<T>(input)?;
                Err(Failure::invalid("no VMs are started here"))
            })
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.tool.name
    }

    /// Calls the tool, with arguments that may be anything.
    pub(crate) async fn call(&self, call: Call, input: JsonObject) -> Result<Value, Failure> {
        self.check_fields(&input)?;
        (self.run)(call, Value::Object(input)).await
    }

    fn check_fields(&self, input: &JsonObject) -> Result<(), Failure> {
        let properties = self.tool.input_schema.get("properties");
        let known = properties.and_then(Value::as_object);
        let is_known = |name: &String| known.is_some_and(|known| known.contains_key(name));
        let Some(unknown) = input.keys().find(|name| !is_known(name)) else {
            return Ok(());
        };
        let known = known.into_iter().flat_map(|known| known.keys());
        let known: Vec<_> = known.map(String::as_str).collect();
        Err(Failure::invalid(format!(
            "there is no argument {unknown:?}: {} takes {}",
            self.name(),
            known.join(", ")
        )))
    }
}

async fn run<T: Tool>(call: Call, input: Value) -> Result<Value, Failure> {
    let output = T::run(call, read::<T>(input)?).await?;
    serde_json::to_value(output).map_err(|error| Failure::internal(&error))
}

/// Reads the arguments of a tool.
fn read<T: Tool>(input: Value) -> Result<T::Input, Failure> {
    serde_path_to_error::deserialize(input).map_err(|error| {
        let path = error.path().to_string();
        match path.as_str() {
            "." => Failure::invalid(error.into_inner().to_string()),
            _ => Failure::invalid(format!("{path}: {}", error.into_inner())),
        }
    })
}
