/** Scenarios that run under load, one after the other (README.md says what happens in each). */
export const scenarioNames = [
  'migration',
  'rolling-update',
  'drain',
  'kubelet-restart',
  'api-server-restart',
  'certificate-rotation',
  'least-privilege',
] as const;

export type ScenarioName = (typeof scenarioNames)[number];
