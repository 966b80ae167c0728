#include <cstdio>
#include <map>
int main() {
    std::map<int, int> counts;
    for (int i = 0; i < 300000; i++) counts[i * 7919L % 100003]++;
    std::printf("%zu\n", counts.size());
}
