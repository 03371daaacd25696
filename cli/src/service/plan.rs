//! Assigns the service options of `vmcell run` to their services.

use super::{for_service::ForService, settings::ServiceSettings};

/// A service to start.
#[derive(Clone, Debug)]
pub(crate) struct PlannedService {
    pub(crate) name: String,
    /// The shell command line that it runs.
    pub(crate) line: String,
    pub(crate) settings: ServiceSettings,
}

/// The services with the positions of their `--service` options, by which other
/// options are assigned to them.
#[derive(Debug, Default)]
pub(super) struct ServicePlan(Vec<(usize, PlannedService)>);

/// A value with its position on the command line.
pub(super) type Positioned<T> = (usize, T);

/// The error that a service already has this setting.
pub(super) struct AlreadySet;

impl ServicePlan {
    pub(super) fn new(services: Vec<Positioned<(String, String)>>) -> Result<Self, String> {
        let mut plan = Self::default();
        for (position, (name, line)) in services {
            if plan.0.iter().any(|(_, other)| other.name == name) {
                return Err(format!(
                    "--service {name} is given twice: use different names"
                ));
            }
            let settings = ServiceSettings::default();
            plan.0.push((
                position,
                PlannedService {
                    name,
                    line,
                    settings,
                },
            ));
        }
        Ok(plan)
    }

    /// Assigns each value of an option to its service.
    pub(super) fn add<T>(
        &mut self,
        option: &str,
        values: Vec<Positioned<ForService<T>>>,
        set: impl Fn(&mut ServiceSettings, T) -> Result<(), AlreadySet>,
    ) -> Result<(), String> {
        for (position, for_service) in values {
            let service = self.find(option, position, for_service.service.as_deref())?;
            if let Err(AlreadySet) = set(&mut service.settings, for_service.value) {
                return Err(format!("{option} is given twice for {:?}", service.name));
            }
        }
        Ok(())
    }

    /// Validates each service as a whole, and returns all of them.
    pub(super) fn finish(self) -> Result<Vec<PlannedService>, String> {
        let services = self.0.into_iter().map(|(_, service)| service);
        let services: Vec<_> = services.collect();
        for PlannedService { name, settings, .. } in &services {
            if settings.ready_timeout.is_some() && settings.ready.is_none() {
                return Err(format!(
                    "--ready-timeout without --ready for {name:?}: add --ready"
                ));
            }
            let is_there = |need: &&String| services.iter().any(|other| other.name == **need);
            if let Some(need) = settings.needs.iter().find(|need| !is_there(need)) {
                return Err(format!(
                    "{name:?} needs {need:?}: there is no --service {need}=…"
                ));
            }
        }
        Ok(services)
    }

    /// Returns the service with this name. Without a name, returns the only
    /// service, or the last one before this position.
    fn find(
        &mut self,
        option: &str,
        position: usize,
        name: Option<&str>,
    ) -> Result<&mut PlannedService, String> {
        let only = self.0.len() == 1;
        let found = self.0.iter_mut().rev().find(|(start, service)| match name {
            Some(name) => service.name == name,
            None => only || *start < position,
        });
        found.map(|(_, service)| service).ok_or_else(|| match name {
            Some(name) => format!("{option} {name}=…: there is no --service {name}=…"),
            None => format!(
                "{option} does not name a service: put it after its --service, or write \
                     {option} NAME=…"
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(names: &[(usize, &str)]) -> Result<ServicePlan, String> {
        let services = names
            .iter()
            .map(|(position, name)| (*position, ((*name).to_owned(), "true".to_owned())));
        ServicePlan::new(services.collect())
    }

    fn needs(plan: &mut ServicePlan, values: &[(usize, Option<&str>, &str)]) -> Result<(), String> {
        let values = values.iter().map(|(position, service, value)| {
            let for_service = ForService {
                service: service.map(str::to_owned),
                value: (*value).to_owned(),
            };
            (*position, for_service)
        });
        plan.add("--needs", values.collect(), |settings, other| {
            settings.needs.push(other);
            Ok(())
        })
    }

    /// Returns the needs of each service.
    fn needs_of(plan: ServicePlan) -> Vec<(String, String)> {
        let services = plan.0.into_iter();
        services
            .map(|(_, service)| (service.name, service.settings.needs.join(" ")))
            .collect()
    }

    #[test]
    fn an_option_is_about_the_service_that_it_names_or_follows() {
        let mut plan = plan(&[(2, "a"), (6, "b"), (10, "c")]).unwrap();
        let values = [
            (4, None, "x"),
            (8, None, "y"),
            (12, Some("a"), "z"),
            (14, None, "w"),
        ];
        needs(&mut plan, &values).unwrap();
        let expected = [("a", "x z"), ("b", "y"), ("c", "w")];
        assert_eq!(
            needs_of(plan),
            expected.map(|(name, needs)| (name.to_owned(), needs.to_owned()))
        );
    }

    #[test]
    fn the_only_service_may_come_behind_what_is_said_about_it() {
        let mut plan = plan(&[(9, "web")]).unwrap();
        needs(&mut plan, &[(1, None, "db")]).unwrap();
        assert_eq!(needs_of(plan), [("web".to_owned(), "db".to_owned())]);
    }

    #[test]
    fn what_is_about_no_service_is_explained() {
        let mut two = plan(&[(5, "a"), (9, "b")]).unwrap();
        let error = needs(&mut two, &[(1, None, "x")]).unwrap_err();
        assert!(error.contains("does not name a service"), "{error}");
        let error = needs(&mut two, &[(1, Some("c"), "x")]).unwrap_err();
        assert!(error.contains("there is no --service c"), "{error}");
        let error = needs(&mut plan(&[]).unwrap(), &[(1, None, "x")]).unwrap_err();
        assert!(error.contains("--service"), "{error}");
        let error = plan(&[(1, "a"), (3, "a")]).unwrap_err();
        assert!(error.contains("twice"), "{error}");
        let mut one = plan(&[(1, "a")]).unwrap();
        needs(&mut one, &[(3, None, "b")]).unwrap();
        let error = one.finish().unwrap_err();
        assert!(error.contains("there is no --service b"), "{error}");
    }
}
