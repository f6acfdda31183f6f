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

/**
 * Plays a scenario under load, and checks that the proxies still take up changes. The cluster is restored also when the
 * scenario breaks off, for those that follow.
 */
export async function play(name: ScenarioName, stage: Stage): Promise<Played> {
  const { obstacle, prepare, play: act, restore } = scenarios[name];
  const reason = obstacle?.(stage);
  if (reason !== undefined) return { name, obstacle: reason };
  let load: LoadOutcome | undefined;
  const errors: string[] = [];
  try {
    await prepare?.(stage);
    load = await stage.web.during(() => act(stage));
    await stage.web.assertChangesArrive();
  } catch (error) {
    errors.push(messageOf(error));
  }
  try {
    await restore?.(stage);
  } catch (error) {
    errors.push(`afterwards: ${messageOf(error)}`);
  }
  return { name, ...(load && { load }), ...(errors.length > 0 && { error: errors.join('; ') }) };
}

export function isSuccess({ load, error }: Played): boolean {
  return error === undefined && (load === undefined || load.failures.length === 0);
}

/** One line, for the time until all scenarios have ended. */
export function summaryOf(played: Played): string {
  const { name, load, error, obstacle } = played;
  const parts = load ? [`${load.failures.length} of ${load.connections} connections failed`] : [];
  return `${name}: ${[...parts, error ?? [], obstacle ?? []].flat().join('; ')}`;
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
  const remark = error === undefined ? '' : 'broke off';
  if (!load) return [remark || `not played: ${obstacle}`, '', ''];
  const connections = [load.connections, remark].filter(Boolean).join(', ');
  return [connections, String(load.failures.length), `${load.slowestMs} ms`];
}
