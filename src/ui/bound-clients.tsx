import { podText } from '../inspect/pod-text.ts';
import type { AffinityReport } from '../inspect/traffic-api.ts';
import { spanText } from '../lib/quantity-text.ts';
import { useAsked } from './asked.ts';
import { Copies } from './copies.tsx';

/** The proxy reads all clients of all Services for an answer, which may be many. */
const everyMs = 5_000;
const maxClients = 20;

/** The clients that affinity binds to endpoints of a Service, and for how long; those that called last come first. */
export function BoundClients({ name }: { readonly name: string }) {
  const query = { name, limit: String(maxClients) };
  const { report } = useAsked<AffinityReport>('affinity', query, everyMs);
  if (!report) return null;
  const { items, leftOut, families } = report;
  const errors = [...new Set(families.flatMap(({ error }) => error ?? []))];
  const hasFrontends = items.some(({ frontend }) => frontend !== null);
  return (
    <section aria-labelledby="bound">
      <h2 id="bound">Bound by affinity</h2>
      {errors.map((error) => (
        <p key={error} class="calm">
          {error}
        </p>
      ))}
      {items.length === 0 && errors.length === 0 && <p class="calm">No client is bound now.</p>}
      {items.length > 0 && (
        <table class="plain">
          <thead>
            <tr>
              <th scope="col">Client</th>
              <th scope="col" class="wide">
                Service port
              </th>
              {hasFrontends && <th scope="col">Frontend</th>}
              <th scope="col">Endpoint</th>
              <th scope="col" class="wide">
                Pod
              </th>
              <th scope="col" class="number">
                Time left
              </th>
            </tr>
          </thead>
          <tbody>
            {items.map(({ service, client, frontend, endpoint, pod, secondsLeft }) => (
              <tr key={`${service} ${client} ${frontend} ${endpoint}`}>
                <th scope="row">{client}</th>
                <td class="wide">{service}</td>
                {hasFrontends && <td>{frontend}</td>}
                <td>{endpoint}</td>
                <td class="wide">{podText({ service, pod })}</td>
                <td class="number">{spanText(secondsLeft * 1000)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {leftOut > 0 && <p class="count">and {leftOut.toLocaleString('en')} more</p>}
      <Copies command={`affinity ${name}`} page="affinity" query={{ name }} isInner />
    </section>
  );
}
