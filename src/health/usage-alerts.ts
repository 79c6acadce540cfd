// Alerts about the usage itself. They say nothing about the program: it works, so `status` ends with 0 and the dead man's switch is
// pinged in spite of them. Pure.

import type { Alert, Condition } from "./alert.ts";
import { anomalyAlerts, anomalyConditions } from "./anomaly-alerts.ts";
import { budgetAlerts, budgetConditions } from "./budget-alerts.ts";
import type { HealthState } from "./state.ts";

export function usageAlertsOf(state: HealthState): readonly Alert[] {
  return [...state.notRead.map(notReadAlert), ...budgetAlerts(state.budgets), ...anomalyAlerts(state.anomalies)];
}

function notReadAlert({ kind, error }: HealthState["notRead"][number]): Alert {
  const section = kind === "budget" ? "budgets" : "anomalies";
  return { name: kind, text: `${section}: not read, as reading them failed: ${error}`, section };
}

export function usageConditions(state: HealthState): readonly Condition[] {
  return [...state.budgets.flatMap(budgetConditions), ...anomalyConditions(state.anomalies)];
}
