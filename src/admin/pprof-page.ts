import { type Handler, type Routes, replyError, textHeaders } from '../http/router.ts';
import type { Clock } from '../lib/clock.ts';
import { reply } from '../lib/http.ts';
import { type ProfileKind, Profiler, ProfilerBusyError } from './profiler.ts';

const defaultSeconds: Readonly<Record<ProfileKind, number>> = { profile: 30, heap: 10, allocs: 10 };
const maxSeconds = 300;

const html = { ...textHeaders, 'Content-Type': 'text/html; charset=utf-8' } as const;

const index = `<html>
<head><title>/debug/pprof/</title></head>
<body>
<p>Profiles of the main thread, in the format of <code>go tool pprof</code>; add <code>?seconds=N</code> to choose how long to observe.</p>
<ul>
<li><a href="profile">profile</a>: where CPU time goes (30 s)</li>
<li><a href="heap">heap</a>: memory allocated while observing and still in use (10 s)</li>
<li><a href="allocs">allocs</a>: all memory allocated while observing (10 s)</li>
</ul>
</body>
</html>
`;

/** The profiler pages, for servers with profiling enabled. */
export function pprofRoutes(clock: Clock): Routes {
  const profiler = new Profiler(clock);
  return {
    '/debug/pprof': (_request, response) =>
      reply(response, 302, { ...html, Location: '/debug/pprof/' }, '<a href="/debug/pprof/">Found</a>.\n\n'),
    '/debug/pprof/': (_request, response) => {
      // Without Content-Length the answer is chunked, as upstream's is.
      response.writeHead(200, html).write(index);
      response.end();
    },
    '/debug/pprof/profile': profileHandler(profiler, 'profile'),
    '/debug/pprof/heap': profileHandler(profiler, 'heap'),
    '/debug/pprof/allocs': profileHandler(profiler, 'allocs'),
    '/debug/pprof/*': (_request, response) => replyError(response, 404, 'Unknown profile'),
  };
}

function profileHandler(profiler: Profiler, kind: ProfileKind): Handler {
  return async (_request, response, { query }) => {
    const text = query.get('seconds');
    const seconds = text === null ? defaultSeconds[kind] : Number(text);
    if (!(seconds > 0 && seconds <= maxSeconds)) {
      return replyError(response, 400, `seconds=${text} is not a number above 0 and up to ${maxSeconds}`);
    }
    const gone = new AbortController();
    response.once('close', () => gone.abort()).once('hangup', () => gone.abort());
    try {
      const profile = await profiler.take(kind, seconds * 1000, gone.signal);
      if (gone.signal.aborted) return;
      const [{ promisify }, { gzip }] = await Promise.all([import('node:util'), import('node:zlib')]);
      const headers = {
        'Content-Type': 'application/octet-stream',
        'X-Content-Type-Options': 'nosniff',
        'Content-Disposition': `attachment; filename="${kind}"`,
      };
      reply(response, 200, headers, await promisify(gzip)(profile));
    } catch (error) {
      if (!(error instanceof ProfilerBusyError)) throw error;
      replyError(response, 409, error.message);
    }
  };
}
