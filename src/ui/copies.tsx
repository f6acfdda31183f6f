import { useState } from 'preact/hooks';
import { apiAddress, type Query } from './api.ts';
import { useKeys } from './keys.tsx';

/** How kube-proxyctl asks the same proxy. */
const call =
  document.querySelector<HTMLMetaElement>('meta[name="kube-proxyctl"]')?.content || 'kube-proxyctl';

interface CopiesProps {
  /** The command without the name of the program: `services shop/web`. */
  readonly command: string;
  /** Where the same answer is as JSON; undefined when it cannot be asked for again. */
  readonly page?: string;
  readonly query?: Query;
  /** Part of a view that has its own. */
  readonly isInner?: boolean;
}

/** The command and the JSON of a view, to copy. */
export function Copies({ command, page, query = {}, isInner = false }: CopiesProps) {
  const [done, setDone] = useState('');
  const text = `${call} ${command}`;
  const address = page && apiAddress(page, query);
  const copy = async (what: string, content: () => Promise<string>) => {
    try {
      await navigator.clipboard.writeText(await content());
      setDone(`${what} copied`);
    } catch {
      setDone(`the ${what.toLowerCase()} could not be copied`);
    }
  };
  const copyCommand = () => copy('Command', async () => text);
  const copyJSON = (from: string) => copy('JSON', async () => prettyJSON(await (await fetch(from)).text()));
  useKeys(isInner ? {} : { c: copyCommand });
  return (
    <footer class="copies">
      <code>{text}</code>
      <button type="button" onClick={copyCommand}>
        Copy command
      </button>
      {address && (
        <>
          <button type="button" onClick={() => copyJSON(address)}>
            Copy JSON
          </button>
          <a href={address}>Show JSON</a>
        </>
      )}
      <span role="status">{done}</span>
    </footer>
  );
}

function prettyJSON(text: string): string {
  return JSON.stringify(JSON.parse(text), null, 2);
}
