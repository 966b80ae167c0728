/** Full stacks, null pointers in compiled code, threads, arrays that are collected, an uncaught exception. */
public class Runtime {
    static int deep(int n) { return deep(n + 1) + 1; }

    static int length(String text) { return text.length(); }

    public static void main(String[] words) throws Exception {
        for (int i = 0; i < 3; i++) {
            try { deep(0); } catch (StackOverflowError error) { System.out.println("full"); }
        }
        int nulls = 0;
        for (int i = 0; i < 30000; i++) {
            try { length(i % 3 == 0 ? null : "text"); } catch (NullPointerException error) { nulls++; }
        }
        System.out.println(nulls);
        long[] sums = new long[8];
        Thread[] threads = new Thread[8];
        for (int t = 0; t < 8; t++) {
            int mine = t;
            threads[t] = new Thread(() -> { for (int i = 0; i < 200; i++) sums[mine] += new byte[100_000 + i].length; });
            threads[t].start();
        }
        for (Thread thread : threads) thread.join();
        System.out.println(java.util.Arrays.stream(sums).sum());
        System.gc();
        System.out.println(new ProcessBuilder("sh", "-c", "exit 9").start().waitFor());
        throw new IllegalStateException("the end");
    }
}
