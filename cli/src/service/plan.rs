//! Assigns the service options of `vmcell run` to their services.

use super::{about::About, settings::Settings};

/// A service to start.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) name: String,
    /// The shell command line that it runs.
    pub(crate) line: String,
    pub(crate) settings: Settings,
}

/// The services with the positions of their `--service` options, by which other
/// options are assigned to them.
#[derive(Debug, Default)]
pub(super) struct Plan(Vec<(usize, Planned)>);

/// A value with its position on the command line.
pub(super) type Placed<T> = (usize, T);

/// The error that a service already has this setting.
pub(super) struct Twice;

impl Plan {
    pub(super) fn new(services: Vec<Placed<(String, String)>>) -> Result<Self, String> {
        let mut plan = Self::default();
        for (place, (name, line)) in services {
            if plan.0.iter().any(|(_, there)| there.name == name) {
                return Err(format!(
                    "--service {name} is there twice: give each its own name"
                ));
            }
            let settings = Settings::default();
            plan.0.push((
                place,
                Planned {
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
        said: Vec<Placed<About<T>>>,
        put: impl Fn(&mut Settings, T) -> Result<(), Twice>,
    ) -> Result<(), String> {
        for (place, about) in said {
            let service = self.find(option, place, about.service.as_deref())?;
            if let Err(Twice) = put(&mut service.settings, about.value) {
                return Err(format!("{option} is there twice for {:?}", service.name));
            }
        }
        Ok(())
    }

    /// Validates each service as a whole, and returns all of them.
    pub(super) fn finish(self) -> Result<Vec<Planned>, String> {
        let services = self.0.into_iter().map(|(_, service)| service);
        let services: Vec<_> = services.collect();
        for Planned { name, settings, .. } in &services {
            if settings.ready_timeout.is_some() && settings.ready.is_none() {
                return Err(format!(
                    "--ready-timeout without --ready for {name:?}: say when it is ready"
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
        place: usize,
        name: Option<&str>,
    ) -> Result<&mut Planned, String> {
        let only = self.0.len() == 1;
        let found = self.0.iter_mut().rev().find(|(start, service)| match name {
            Some(name) => service.name == name,
            None => only || *start < place,
        });
        found.map(|(_, service)| service).ok_or_else(|| match name {
            Some(name) => format!("{option} {name}=…: there is no --service {name}=…"),
            None => format!(
                "{option}: say for which service: write it behind its --service, or \
                     {option} NAME=…"
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(names: &[(usize, &str)]) -> Result<Plan, String> {
        let services = names
            .iter()
            .map(|(place, name)| (*place, ((*name).to_owned(), "true".to_owned())));
        Plan::new(services.collect())
    }

    fn needs(plan: &mut Plan, said: &[(usize, Option<&str>, &str)]) -> Result<(), String> {
        let said = said.iter().map(|(place, service, value)| {
            let about = About {
                service: service.map(str::to_owned),
                value: (*value).to_owned(),
            };
            (*place, about)
        });
        plan.add("--needs", said.collect(), |settings, other| {
            settings.needs.push(other);
            Ok(())
        })
    }

    /// Returns the needs of each service.
    fn told(plan: Plan) -> Vec<(String, String)> {
        let services = plan.0.into_iter();
        services
            .map(|(_, service)| (service.name, service.settings.needs.join(" ")))
            .collect()
    }

    #[test]
    fn an_option_is_about_the_service_that_it_names_or_follows() {
        let mut plan = plan(&[(2, "a"), (6, "b"), (10, "c")]).unwrap();
        let said = [
            (4, None, "x"),
            (8, None, "y"),
            (12, Some("a"), "z"),
            (14, None, "w"),
        ];
        needs(&mut plan, &said).unwrap();
        let expected = [("a", "x z"), ("b", "y"), ("c", "w")];
        assert_eq!(
            told(plan),
            expected.map(|(name, needs)| (name.to_owned(), needs.to_owned()))
        );
    }

    #[test]
    fn the_only_service_may_come_behind_what_is_said_about_it() {
        let mut plan = plan(&[(9, "web")]).unwrap();
        needs(&mut plan, &[(1, None, "db")]).unwrap();
        assert_eq!(told(plan), [("web".to_owned(), "db".to_owned())]);
    }

    #[test]
    fn what_is_about_no_service_is_explained() {
        let mut two = plan(&[(5, "a"), (9, "b")]).unwrap();
        let told = needs(&mut two, &[(1, None, "x")]).unwrap_err();
        assert!(told.contains("say for which service"), "{told}");
        let told = needs(&mut two, &[(1, Some("c"), "x")]).unwrap_err();
        assert!(told.contains("there is no --service c"), "{told}");
        let told = needs(&mut plan(&[]).unwrap(), &[(1, None, "x")]).unwrap_err();
        assert!(told.contains("--service"), "{told}");
        let told = plan(&[(1, "a"), (3, "a")]).unwrap_err();
        assert!(told.contains("twice"), "{told}");
        let mut one = plan(&[(1, "a")]).unwrap();
        needs(&mut one, &[(3, None, "b")]).unwrap();
        let told = one.finish().unwrap_err();
        assert!(told.contains("there is no --service b"), "{told}");
    }
}
