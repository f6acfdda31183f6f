import type { FamilyStatus, StatusReport, WatchReport } from '../inspect/api.ts';
import { agoText, spanText } from '../lib/quantity-text.ts';

/** The kernel side and the source side of the proxy. */
export function NodeSummary({ status }: { status: StatusReport }) {
  return (
    <div class="cards">
      <section class="card" aria-labelledby="kernel">
        <h2 id="kernel">Kernel</h2>
        <div class="families">
          {status.families.map((family) => (
            <Family key={family.family} family={family} now={status.time} />
          ))}
        </div>
      </section>
      <section class="card" aria-labelledby="sources">
        <h2 id="sources">Sources</h2>
        <Sources status={status} />
      </section>
    </div>
  );
}

function Family({ family, now }: { family: FamilyStatus; now: string }) {
  const { lastSync, failures, lastFailure, repairs, lastRepair, lastRepairCause, pending } = family;
  const waiting = pending.services + pending.endpointSlices;
  const isFailing = lastFailure !== null && (lastSync === null || lastSync.time < lastFailure.time);
  const sync = lastSync
    ? `${agoText(lastSync.time, now)}, ${lastSync.kind}, took ${spanText(lastSync.seconds * 1000)}`
    : 'never';
  const cause =
    lastRepair !== null && lastRepairCause
      ? `, last ${agoText(lastRepair, now)}: ${lastRepairCause.by} had changed our rules (${lastRepairCause.changes})`
      : '';
  return (
    <div>
      <h3>
        {family.family} <small>{family.nodeIP}</small>
      </h3>
      <dl class="facts">
        <Fact
          name="Service ports"
          value={`${number(family.servicePorts)}, ${number(family.endpoints)} endpoints`}
        />
        <Fact name="Last sync" value={sync} />
        {waiting > 0 && <Fact name="Waiting" value={`${number(waiting)} changes`} />}
        <Fact
          name="Repairs"
          value={repairs === 0 ? 'none' : `${number(repairs)}${cause}`}
          tone={repairs > 0 ? 'warning' : ''}
        />
        {lastFailure && (
          <Fact
            name="Failed syncs"
            value={`${number(failures)}, last ${agoText(lastFailure.time, now)}${isFailing ? '' : ', succeeded since'}: ${lastFailure.message}`}
            tone={isFailing ? 'outage' : ''}
          />
        )}
      </dl>
    </div>
  );
}

function Sources({ status }: { status: StatusReport }) {
  const { sources, configuration, time } = status;
  const kind = sources.kind === 'APIServer' ? 'API server' : 'Manifests';
  return (
    <dl class="facts">
      <Fact name={kind} value={sources.location} />
      {sources.watches.map((watch) => (
        <Fact
          key={watch.resource}
          name={watch.resource}
          value={watchText(watch, time)}
          tone={watch.state === 'broken' ? 'warning' : ''}
        />
      ))}
      {sources.errors.map(({ path, position, reason }) => (
        <Fact
          key={path}
          name="Not in effect"
          value={`${[path, position].filter(Boolean).join(':')}: ${reason}`}
          tone="warning"
        />
      ))}
      {configuration ? (
        <>
          <Fact
            name="Configuration"
            value={`${configuration.file}, generation ${configuration.generation}`}
          />
          <Fact
            name="File on disk"
            value={`${onDiskTexts[configuration.onDisk.state]}${configuration.onDisk.reason === null ? '' : `: ${configuration.onDisk.reason}`}`}
            tone={['Unusable', 'Rejected'].includes(configuration.onDisk.state) ? 'warning' : ''}
          />
        </>
      ) : (
        <Fact name="Configuration" value="flags, no file" />
      )}
    </dl>
  );
}

const onDiskTexts = {
  InUse: 'in use',
  Changed: 'changed; the program ends to be restarted with it',
  Rejected: 'rejected; the former configuration is in use',
  Unusable: 'cannot be used; a restart would fail',
  Unknown: 'not known whether it is the one in use',
} as const;

function watchText({ state, since, reason, lastEvent }: WatchReport, now: string): string {
  const span = spanText(Date.parse(now) - Date.parse(since));
  const event = lastEvent === null ? '' : `, last event ${agoText(lastEvent, now)}`;
  if (state === 'connected') return `connected for ${span}${event}`;
  return `${state === 'broken' ? 'stale' : 'connecting'} for ${span}${reason === null ? '' : `: ${reason}`}`;
}

/** A name and a value; `tone` marks one that is not as it should be. */
export function Fact({ name, value, tone = '' }: { name: string; value: string; tone?: string }) {
  return (
    <div class={tone}>
      <dt>{name}</dt>
      <dd>
        {tone !== '' && <span aria-hidden="true">▲ </span>}
        {value}
      </dd>
    </div>
  );
}

function number(n: number): string {
  return n.toLocaleString('en');
}
