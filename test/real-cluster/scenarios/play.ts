import type { LoadOutcome } from '../load-client.ts';
import { scenario as apiServerRestart } from './api-server-restart.ts';
import { scenario as certificateRotation } from './certificate-rotation.ts';
import { scenario as drain } from './drain.ts';
import { scenario as kubeletRestart } from './kubelet-restart.ts';
import { scenario as leastPrivilege } from './least-privilege.ts';
import { scenario as migration } from './migration.ts';
import type { ScenarioName } from './names.ts';
import { scenario as rollingUpdate } from './rolling-update.ts';
import type { Scenario, Stage } from './scenario.ts';

const scenarios: Readonly<Record<ScenarioName, Scenario>> = {
  migration,
  'rolling-update': rollingUpdate,
  drain,
  'kubelet-restart': kubeletRestart,
  'api-server-restart': apiServerRestart,
  'certificate-rotation': certificateRotation,
  'least-privilege': leastPrivilege,
};

/** What became of a scenario: figures of the load, or the reason why it was not played. */
export interface Played {
  readonly name: string;
  readonly load?: LoadOutcome;
  readonly obstacle?: string;
}

/** Plays a scenario under load, and checks that the proxies still take up changes. */
export async function play(name: ScenarioName, stage: Stage): Promise<Played> {
  const { obstacle, prepare, play: act, restore } = scenarios[name];
  const reason = obstacle?.(stage.mode);
  if (reason !== undefined) return { name, obstacle: reason };
  await prepare?.(stage);
  const load = await stage.web.during(() => act(stage));
  await stage.web.assertChangesArrive();
  await restore?.(stage);
  return { name, load };
}

export function renderScenarios(played: readonly Played[], title: string): string {
  const rows = played.map(({ name, load, obstacle }) =>
    load
      ? `| ${name} | ${load.connections} | ${load.failures.length} | ${load.slowestMs} ms |`
      : `| ${name} | not played: ${obstacle} | | |`,
  );
  const failures = played.flatMap(({ name, load }) =>
    (load?.failures ?? []).slice(0, 20).map((failure) => `${name}: ${failure}`),
  );
  return [
    `| scenario, ${title} | connections | failed | slowest |`,
    '|---|---|---|---|',
    ...rows,
    '',
    ...failures,
  ].join('\n');
}
