import type { ServiceReport } from '../inspect/api.ts';
import type { TrafficReport } from '../inspect/traffic-api.ts';
import { joinHostPort } from '../model/ip.ts';
import { useAsked } from './asked.ts';
import { failedCount, shortNumber, trafficKey } from './rates.ts';
import type { Asked } from './route.ts';

const maxClients = 20;

interface ClientsProps {
  readonly name: string;
  readonly ports: readonly ServiceReport[];
  readonly ask: (question: Asked) => void;
}

/** The clients of a Service, the busiest first. The explanation of one says how long affinity still binds it. */
export function Clients({ name, ports, ask }: ClientsProps) {
  const { report } = useAsked<TrafficReport>('traffic', { by: 'client', name });
  if (!report || report.items.length === 0) return null;
  const items = report.items.toSorted((a, b) => b.open - a.open || b.opened - a.opened);
  const askAbout = (client: string, service: string, family: string) => {
    const port = ports.find((each) => each.service === service && each.family === family);
    if (port) ask({ from: client, to: `${joinHostPort(port.clusterIP, port.port)}/${port.protocol}` });
  };
  return (
    <section aria-labelledby="clients">
      <h2 id="clients">Clients</h2>
      <table class="plain">
        <thead>
          <tr>
            <th scope="col">Client</th>
            <th scope="col" class="wide">
              Service port
            </th>
            <th scope="col" class="number">
              Open
            </th>
            <th scope="col" class="number">
              Opened
            </th>
            <th scope="col" class="number">
              Failed
            </th>
            <th scope="col">
              <span class="hidden">Question</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {items.slice(0, maxClients).map((item) => (
            <tr key={trafficKey(item)}>
              <th scope="row">{item.client}</th>
              <td class="wide">{item.service}</td>
              <td class="number">{item.open}</td>
              <td class="number">{shortNumber(item.opened)}</td>
              <td class="number">{failedCount(item.failed)}</td>
              <td>
                <button type="button" onClick={() => askAbout(item.client ?? '', item.service, item.family)}>
                  Explain
                </button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {items.length > maxClients && (
        <p class="count">and {(items.length - maxClients).toLocaleString('en')} more</p>
      )}
    </section>
  );
}
