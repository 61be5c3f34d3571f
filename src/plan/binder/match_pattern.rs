//! The pattern of a `MATCH_RECOGNIZE`: its variables, how often each comes, and where the search goes
//! on after a match.

use sqlparser::ast::{self, AfterMatchSkip, MatchRecognizePattern, MatchRecognizeSymbol};

use crate::error::{Error, Result};
use crate::plan::match_recognize::{PatternVariable, SkipStrategy};
use crate::sql::quantified;

/// The variables of a pattern, in order.
///
/// # Errors
/// When the pattern is none that Flink takes.
pub(super) fn pattern_variables(pattern: &MatchRecognizePattern) -> Result<Vec<PatternVariable>> {
    let mut variables = Vec::new();
    add_variables(pattern, &mut variables)?;
    if variables.iter().all(|v: &PatternVariable| v.least == 0) {
        return Err(Error::plan(
            "Patterns that can produce empty matches are not supported. There must be at least one \
             non-optional state.",
        ));
    }
    let last_is_greedy = variables.last().is_some_and(|v| v.greedy);
    if last_is_greedy {
        return Err(Error::plan(
            "Greedy quantifiers are not allowed as the last element of a Pattern yet. Finish your \
             pattern with either a simple variable or reluctant quantifier.",
        ));
    }
    Ok(variables)
}

fn add_variables(
    pattern: &MatchRecognizePattern,
    variables: &mut Vec<PatternVariable>,
) -> Result<()> {
    let (inner, quantifier) = quantified(pattern);
    let refuse = |why: &str| {
        Err(Error::plan(format!(
            "Expression not supported: {pattern}. {why}"
        )))
    };
    match inner {
        MatchRecognizePattern::Alternation(_) => {
            refuse("Currently, CEP doesn't support branching patterns.")
        }
        MatchRecognizePattern::Concat(parts) => parts
            .iter()
            .try_for_each(|part| add_variables(part, variables)),
        MatchRecognizePattern::Group(group) => {
            let single = matches!(group.as_ref(), MatchRecognizePattern::Symbol(_));
            if (quantifier.least, quantifier.most) == (1, Some(1)) {
                return add_variables(group, variables);
            }
            if !single {
                return refuse("Group patterns are not supported yet.");
            }
            let before = variables.len();
            add_variables(group, variables)?;
            variables[before..]
                .iter_mut()
                .try_for_each(|v| quantify(v, quantifier))
        }
        MatchRecognizePattern::Symbol(MatchRecognizeSymbol::Named(name)) => {
            let name = &name.value;
            if name == "$" {
                return refuse("Anchors are not supported in MATCH_RECOGNIZE.");
            }
            if variables.iter().any(|v| v.name == *name) {
                return Err(Error::plan(
                    "Pattern variables must be unique. That might change in the future.",
                ));
            }
            let mut variable = PatternVariable {
                name: name.clone(),
                least: 1,
                most: Some(1),
                greedy: false,
                row: None,
                history: None,
            };
            quantify(&mut variable, quantifier)?;
            if variable.least == 0 && variables.last().is_some_and(|v| v.greedy) {
                return Err(Error::plan(
                    "Optional pattern cannot be preceded by greedy pattern",
                ));
            }
            variables.push(variable);
            Ok(())
        }
        _ => refuse("It is not supported in MATCH_RECOGNIZE."),
    }
}

fn quantify(variable: &mut PatternVariable, quantifier: crate::sql::Quantifier) -> Result<()> {
    let (least, most) = (quantifier.least, quantifier.most);
    let optional = (least, most) == (0, Some(1));
    if most.is_some_and(|most| most < least.max(1)) {
        return Err(Error::plan(format!(
            "The to should be a number greater than or equal to from: {}.",
            least.max(1)
        )));
    }
    if optional && !quantifier.greedy {
        return Err(Error::plan(
            "Reluctant optional variables are not supported yet.",
        ));
    }
    variable.least = least;
    variable.most = most;
    // what takes a fixed number of rows has no choice, and `?` takes what matches first
    variable.greedy = quantifier.greedy && !optional && most != Some(least);
    Ok(())
}

/// What `AFTER MATCH SKIP` says.
///
/// # Errors
/// When it names an unknown variable.
pub(super) fn skip_strategy(
    skip: Option<&AfterMatchSkip>,
    variables: &[PatternVariable],
) -> Result<SkipStrategy> {
    let find = |name: &ast::Ident| {
        let name = &name.value;
        let found = variables.iter().position(|v| v.name == *name);
        found.ok_or_else(|| Error::plan(format!("Unknown pattern '{name}'")))
    };
    Ok(match skip {
        None | Some(AfterMatchSkip::ToNextRow) => SkipStrategy::ToNextRow,
        Some(AfterMatchSkip::PastLastRow) => SkipStrategy::PastLastRow,
        Some(AfterMatchSkip::ToFirst(name)) => SkipStrategy::ToFirst(find(name)?),
        Some(AfterMatchSkip::ToLast(name)) => SkipStrategy::ToLast(find(name)?),
    })
}
