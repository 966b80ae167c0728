import java.util.*;
import java.util.stream.*;
public class Sorts {
    public static void main(String[] words) {
        Random random = new Random(1);
        long[] values = random.longs(600_000).toArray();
        Map<Long, Integer> counts = new TreeMap<>();
        for (long value : values) counts.merge(value % 5000, 1, Integer::sum);
        Arrays.parallelSort(values);
        System.out.println(values[0] + " " + counts.size());
        System.out.println(LongStream.of(values).parallel().map(v -> v >>> 40).sum());
        List<byte[]> kept = new ArrayList<>();
        for (int i = 0; i < 3000; i++) { kept.add(new byte[100_000]); if (kept.size() > 100) kept.clear(); }
        System.exit(kept.size() % 7);
    }
}
