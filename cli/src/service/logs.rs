//! `vmcell service logs`: prints a service's log.

use serde_json::json;
use vmcell::{
    Vm,
    service::{LogEvent, LogStream, Service},
};

use super::{arguments::LogArguments, control::find};
use crate::{
    exit_code,
    failure::print_json,
    output::{Outputs, Written},
    tail::Tail,
};

pub(super) async fn logs(arguments: &LogArguments) -> anyhow::Result<u8> {
    let vm = Vm::attach(&arguments.id).await?;
    let service = find(&vm, &arguments.name).await?;
    let request = service.logs().follow(arguments.follow);
    let request = match arguments.all {
        true => request.all(),
        false => request.tail(arguments.tail),
    };
    let log = request.stream().await?;
    match arguments.json {
        true => print_collected(&vm, &service, log).await,
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

async fn print_collected(vm: &Vm, service: &Service, mut log: LogStream) -> anyhow::Result<u8> {
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
    print_json(&json!({
        "sandbox_id": vm.id(),
        "service": now,
        "dropped_bytes": text.dropped,
        "log": text.into_text(),
    }));
    Ok(0)
}
