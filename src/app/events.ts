import type { BindFailure } from '../health/service-health.ts';
import type { EventInput, EventRegarding } from '../kube/events/event.ts';
import type { ObjectName } from '../proxier/set-aside.ts';

/** Events about this node, in the form upstream gives them. */
export class NodeEvents {
  readonly #record: (event: EventInput) => void;
  readonly #node: EventRegarding;

  constructor(nodeName: string, record: (event: EventInput) => void) {
    this.#record = record;
    this.#node = { apiVersion: 'v1', kind: 'Node', name: nodeName };
  }

  starting(): void {
    this.#start('Normal', 'Starting', '');
  }

  warn(reason: string, note: string): void {
    this.#start('Warning', reason, note);
  }

  /** A changed configuration file that this node could not use. Upstream has no event for this. */
  configurationRejected(note: string): void {
    this.#record({
      regarding: this.#node,
      type: 'Warning',
      reason: 'ConfigurationRejected',
      action: 'ChangeConfiguration',
      note,
    });
  }

  #start(type: EventInput['type'], reason: string, note: string): void {
    this.#record({ regarding: this.#node, type, reason, action: 'StartKubeProxy', note });
  }
}

/** A health check node port that could not be opened. */
export function healthCheckFailed(failure: BindFailure): EventInput {
  return {
    regarding: regardingOf(failure),
    type: 'Warning',
    reason: 'FailedToStartServiceHealthcheck',
    action: 'Listen',
    note: failure.note,
  };
}

/** A Service that this node cannot (fully) program. Upstream has no event for this. */
export function setAsideEvent(nodeName: string, service: ObjectName, problem: string): EventInput {
  return {
    regarding: regardingOf(service),
    type: 'Warning',
    reason: 'FailedToProgram',
    action: 'Program',
    note: `node ${nodeName}: ${problem}`,
  };
}

function regardingOf({ namespace, name }: Pick<ObjectName, 'namespace' | 'name'>): EventRegarding {
  return { apiVersion: 'v1', kind: 'Service', namespace, name };
}
