import { useEffect, useState } from 'preact/hooks';
import { Banner } from './banner.tsx';
import { Keys, useKeys } from './keys.tsx';
import { follow, type Live, nothingYet } from './live.ts';
import { go } from './navigate.ts';
import { type Route, readRoute } from './route.ts';
import { ServiceView } from './service-view.tsx';
import { ServicesView } from './services-view.tsx';
import { TimelineView } from './timeline-view.tsx';

export function App() {
  const [live, setLive] = useState<Live>(nothingYet);
  const route = useRoute();
  const [hasHelp, setHelp] = useState(false);
  useEffect(() => follow(setLive), []);
  useKeys({ '?': () => setHelp(true), t: () => go({ view: 'timeline', filter: { event: '' } }) });
  const { status } = live;
  useEffect(() => {
    document.title = status ? `${status.nodeName}: ${status.state}` : 'kube-proxy';
  }, [status?.nodeName, status?.state]);
  return (
    <>
      <button type="button" class="skip" onClick={skipToMain}>
        Skip to the content
      </button>
      <Banner live={live} route={route} />
      <main id="main" tabIndex={-1} class={live.failure === undefined ? '' : 'stale'}>
        <View live={live} route={route} />
      </main>
      {hasHelp && <Keys onClose={() => setHelp(false)} />}
    </>
  );
}

function View({ live, route }: { live: Live; route: Route }) {
  if (route.view === 'timeline') return <TimelineView filter={route.filter} />;
  if (route.view === 'service') {
    const { namespace, name, question } = route;
    return <ServiceView key={`${namespace}/${name}`} {...{ live, namespace, name, question }} />;
  }
  return <ServicesView live={live} filter={route.filter} />;
}

function useRoute(): Route {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const read = () => setHash(location.hash);
    addEventListener('hashchange', read);
    return () => removeEventListener('hashchange', read);
  }, []);
  return readRoute(hash);
}

/** Not by a link: the address is that of the view. */
function skipToMain(): void {
  document.getElementById('main')?.focus();
}
