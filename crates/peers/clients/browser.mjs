// A person at a browser, for the tests: headless Chromium opens the page given as the last argument, logs in by the form it
// finds, agrees to what is asked, and closes the browser when it has been sent back.
//
// Says on its standard error where it was.

import chromium from '@sparticuz/chromium';
import puppeteer from 'puppeteer-core';

const address = process.argv.at(-1);
const browser = await puppeteer.launch({
  executablePath: await chromium.executablePath(),
  args: [...chromium.args, '--no-sandbox'],
  headless: 'shell',
});
try {
  const page = await browser.newPage();
  await page.goto(address);
  while (!new URL(page.url()).pathname.startsWith('/callback')) {
    console.error(`at ${new URL(page.url()).pathname}`);
    const login = await page.$('input[name=login]');
    if (login) {
      await login.type('ada');
      await page.type('input[name=password]', 'lovelace');
    }
    await Promise.all([page.waitForNavigation(), page.click('button[type=submit]')]);
  }
  console.error(await page.evaluate(() => document.body.innerText));
} finally {
  await browser.close();
}
