/** Delays files until the test releases them, so that the order of two events is not random. */
import type { Page } from '@playwright/test';

/** The loader in a page. */
const INLINE = /(<script type="module" blocking="render")>(.*?)<\/script>/s;

/** The address of the loader after its removal from the page. */
const LOADER = '/assets/loader.js';

/** Holds back every file whose URL matches until the returned function is called. Call before opening the page. */
export async function holdBack(page: Page, files: RegExp): Promise<() => void> {
  let release = () => {};
  const released = new Promise<void>((done) => {
    release = done;
  });
  await page.route(files, async (route) => {
    await released;
    await route.continue();
  });
  return release;
}

/**
 * Replaces the inline loader of every opened page by a file, and holds this file back until the returned function is
 * called: with `true` it arrives, with `false` it fails. Call before opening the page.
 */
export async function holdLoader(page: Page): Promise<(arrives?: boolean) => void> {
  let release = (_arrives?: boolean) => {};
  const released = new Promise<boolean>((done) => {
    release = (arrives = true) => done(arrives);
  });
  let loader = '';
  await page.route('**', async (route) => {
    if (route.request().resourceType() !== 'document') return route.fallback();
    const response = await route.fetch();
    const html = await response.text();
    loader = INLINE.exec(html)?.[2] ?? loader;
    await route.fulfill({ response, body: html.replace(INLINE, `$1 src="${LOADER}"></script>`) });
  });
  await page.route(`**${LOADER}`, async (route) => {
    if (await released) await route.fulfill({ contentType: 'text/javascript', body: loader });
    else await route.abort();
  });
  return release;
}

/**
 * Holds back the tasks in which React hydrates, so that a test can act between the start and the hydration of an
 * island. Call before opening the page. `held` waits for such a task, and `release` runs all.
 */
export async function holdReact(page: Page): Promise<{ held(): Promise<void>; release(): Promise<void> }> {
  await page.addInitScript(() => {
    const post = MessagePort.prototype.postMessage;
    const tasks: (() => void)[] = [];
    MessagePort.prototype.postMessage = function (this: MessagePort, ...message: [unknown]) {
      tasks.push(() => post.apply(this, message));
    };
    const release = () => {
      MessagePort.prototype.postMessage = post;
      for (const task of tasks.splice(0)) task();
    };
    Object.assign(window, { reactTasks: { tasks, release } });
  });
  type Held = { reactTasks: { tasks: unknown[]; release(): void } };
  const held = async () => {
    await page.waitForFunction(() => (window as unknown as Held).reactTasks.tasks.length > 0);
  };
  const release = () => page.evaluate(() => (window as unknown as Held).reactTasks.release());
  return { held, release };
}
