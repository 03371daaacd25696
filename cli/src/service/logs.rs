//! `vmcell service logs`: prints a service's log.

use serde_json::json;
use vmcell::service::{LogEvent, LogStream, Service};

use super::{arguments::LogOptions, control::find};
use crate::{
    exit_code,
    failure::print_json,
    output::{Outputs, Written},
    tail::Tail,
    target::Target,
};

pub(crate) async fn logs(target: &Target, options: &LogOptions, json: bool) -> anyhow::Result<u8> {
    let service = find(&target.vm, &options.service.name).await?;
    let request = service.logs().follow(options.follow);
    let request = match options.all {
        true => request.all(),
        false => request.tail(options.tail),
    };
    let log = request.stream().await?;
    match json {
        true => print_collected(target, &service, log).await,
        false => print(log).await,
    }
}

async fn print(mut log: LogStream) -> anyhow::Result<u8> {
    let outputs = Outputs::for_command();
    let read = loop {
        let keep_reading = match log.next().await {
            Ok(Some(LogEvent::Bytes { bytes, .. })) => outputs.print(bytes).await,
            Ok(Some(LogEvent::Dropped { bytes })) => outputs.report_gap("the log", bytes).await,
            Ok(Some(_)) => true,
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        };
        if !keep_reading {
            break Ok(());
        }
    };
    // Print what came before a failure.
    let written = outputs.finish().await?;
    read?;
    Ok(match written {
        Written::All => 0,
        Written::ReaderGone => exit_code::BROKEN_PIPE,
    })
}

async fn print_collected(
    target: &Target,
    service: &Service,
    mut log: LogStream,
) -> anyhow::Result<u8> {
    let mut text = Tail::default();
    while let Some(event) = log.next().await? {
        match event {
            LogEvent::Bytes { bytes, .. } => text.add(&bytes),
            LogEvent::Dropped { bytes } => text.gap(bytes),
            _ => {}
        }
    }
    let now = match log.status() {
        Some(status) => status.clone(),
        None => service.status().await?,
    };
    let mut object = target.as_json();
    object["service"] = json!(now);
    object["dropped_bytes"] = text.dropped.into();
    object["log"] = text.into_text().into();
    print_json(&object);
    Ok(0)
}
