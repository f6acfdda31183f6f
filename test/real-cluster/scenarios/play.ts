import { messageOf } from '../../../src/lib/thrown.ts';
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

/** What became of a scenario. */
export interface Played {
  readonly name: string;
  readonly load?: LoadOutcome;
  /** Why it was not played. */
  readonly obstacle?: string;
  /** Why it broke off. */
  readonly error?: string;
}

/** Plays a scenario under load, and checks that the proxies still take up changes. */
export async function play(name: ScenarioName, stage: Stage): Promise<Played> {
  const { obstacle, prepare, play: act, restore } = scenarios[name];
  const reason = obstacle?.(stage.mode);
  if (reason !== undefined) return { name, obstacle: reason };
  try {
    await prepare?.(stage);
    const load = await stage.web.during(() => act(stage));
    await stage.web.assertChangesArrive();
    await restore?.(stage);
    return { name, load };
  } catch (error) {
    return { name, error: messageOf(error) };
  }
}

export function isSuccess({ load, error }: Played): boolean {
  return error === undefined && (load === undefined || load.failures.length === 0);
}

/** One line, for the time until all scenarios have ended. */
export function summaryOf(played: Played): string {
  const { load } = played;
  if (!load) return `${played.name}: ${played.error ?? played.obstacle}`;
  return `${played.name}: ${load.failures.length} of ${load.connections} connections failed`;
}

/** A table in Markdown, then the first failures of each scenario. */
export function renderScenarios(played: readonly Played[], title: string): string {
  const failures = played.flatMap(({ name, load, error }) =>
    [...(load?.failures ?? []).slice(0, 20), ...(error === undefined ? [] : [error])].map(
      (failure) => `${name}: ${failure}`,
    ),
  );
  return [
    `| scenario, ${title} | connections | failed | slowest |`,
    '|---|---|---|---|',
    ...played.map((each) => `| ${each.name} | ${cells(each).join(' | ')} |`),
    '',
    ...failures,
  ].join('\n');
}

function cells({ load, obstacle, error }: Played): string[] {
  if (load) return [String(load.connections), String(load.failures.length), `${load.slowestMs} ms`];
  return [error === undefined ? `not played: ${obstacle}` : 'broke off', '', ''];
}
